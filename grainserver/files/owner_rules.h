#pragma once
// What the owner of a host lets grains do, as the launcher holds the grain server to it. The server's process that
// talks to the network writes the launch records; this file lies where it cannot write, and what a record asks beyond
// it is not started, whoever wrote the record.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/confinement.h"
#include "base/status.h"
#include "grainserver/files/grain_record.h"

namespace dcs::files {

inline constexpr const char *rules_name = "rules";  // in the server's directory, as the next
inline constexpr const char *homes_folder = "home";
inline constexpr std::uint32_t first_login = 1000, nobody_id = 65534;  // below: the system's own accounts
inline constexpr std::uint32_t first_made_up = 2'000'000'000, last_made_up = 2'000'065'535;

struct OwnerRules {
    bool users = false;                 // grains run under accounts of their own; false: as the server does
    std::vector<std::string> accounts;  // logins that may be used
    std::uint32_t first = first_made_up, last = last_made_up;  // uids that may be made up
    Limits limits;
    std::uint32_t rungs = 0;            // Rungs that every grain has at least
    std::vector<std::string> writable;  // where grains may write besides their rooms and homes
    std::string homes;                  // the directory of users' homes
    bool operator==(const OwnerRules &) const = default;
};
std::string pack(const OwnerRules &rules);
Result<OwnerRules> unpack_rules(std::string_view bytes);

// The accounts of this host.
struct Logins {
    virtual ~Logins() = default;
    // Whose uid that is; nothing if nobody's.
    virtual std::optional<std::string> name_of(std::uint32_t uid) const = 0;
    // uid, gid and groups of a login that `rules` allow, or why it cannot be used.
    virtual Result<Account> login(const OwnerRules &rules, const std::string &name) const = 0;
};
const Logins &logins_of_this_host();

// Code::refused: what the record asks beyond the rules.
Status permits(const OwnerRules &rules, const LaunchRecord &record, const Logins &logins);
Status permits(const OwnerRules &rules, const Account &account, const Logins &logins);

}  // namespace dcs::files
