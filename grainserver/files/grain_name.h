#pragma once
// The directory of one lease of a grain: `<host>,<user>,<session>,<grain>,<incarnation>`. Bytes of the
// names outside [A-Za-z0-9_+-] are written %XX, so that different leases never share a name and no
// name can leave the directory.
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"

namespace dcs::files {

struct LeaseName {
    std::string host;  // name of the grain server
    GrainKey key;
    Incarnation incarnation = 0;
    auto operator<=>(const LeaseName &) const = default;
};

std::string directory_name(const std::string &host, const GrainKey &key, Incarnation incarnation);
// Accepts only results of directory_name(); otherwise Code::invalid.
Result<LeaseName> parse_directory_name(std::string_view name);
// Encodes a single name (home directories of users on this host).
std::string encoded_name(std::string_view name);

}  // namespace dcs::files
