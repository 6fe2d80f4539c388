#include "process/landlock.h"

#include <algorithm>
#include <cerrno>

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dcs::landlock {
namespace {
struct RulesetAttr {
    std::uint64_t files, network, scoped;
};                                                         // of version 6
constexpr std::uint64_t first_rights = 2 * make_link - 1;  // of version 1
}  // namespace

int version() {
    return std::max(
        0, static_cast<int>(::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION)));
}

std::uint64_t rights_known(int version) {
    std::uint64_t rights = version >= 1 ? first_rights : 0;
    if (version >= 2) rights |= move;
    if (version >= 3) rights |= truncate;
    if (version >= 5) rights |= device_calls;
    return rights;
}

std::uint64_t scopes_known(int version) { return version >= scoping_since ? abstract_sockets | signals : 0; }

int new_ruleset(std::uint64_t rights, std::uint64_t scopes) noexcept {
    const RulesetAttr attr{rights, 0, scopes};
    // An old kernel takes the long form as long as what it does not know is zero.
    return static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0));
}

int allow(int ruleset, int fd, std::uint64_t rights) noexcept {
    landlock_path_beneath_attr attr{.allowed_access = rights, .parent_fd = fd};
    return ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0) == 0 ? 0 : errno;
}

int restrict_self(int ruleset) noexcept { return ::syscall(SYS_landlock_restrict_self, ruleset, 0) == 0 ? 0 : errno; }

}  // namespace dcs::landlock
