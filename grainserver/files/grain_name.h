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
// Only the names that directory_name() makes; anything else is Code::invalid.
Result<LeaseName> parse_directory_name(std::string_view name);
// One name alone (home directories of users on this host).
std::string encoded_name(std::string_view name);

}  // namespace dcs::files
