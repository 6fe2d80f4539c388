#pragma once
// The directory of one lease of a grain: `<user>,<session>,<grain>,<incarnation>`. Bytes of the user
// name outside [A-Za-z0-9_+-] are written %XX, so that different leases never share a name and no
// user name can leave the directory.
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"

namespace dcs::files {

struct LeaseName {
    GrainKey key;
    Incarnation incarnation = 0;
    auto operator<=>(const LeaseName &) const = default;
};

std::string directory_name(const GrainKey &key, Incarnation incarnation);
// Only the names that directory_name() makes; anything else is Code::invalid.
Result<LeaseName> parse_directory_name(std::string_view name);
// The user part alone (home directories of users on this host).
std::string encoded_user(std::string_view user);

}  // namespace dcs::files
