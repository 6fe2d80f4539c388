#pragma once
// The rules of a host's owner for grains, which the launcher enforces on the grain server. The server process that
// communicates with the network writes the launch records, but cannot write this file. A record that exceeds the rules
// is not started.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/confinement.h"
#include "base/status.h"
#include "grainserver/files/grain_record.h"

namespace dcs::files {

inline constexpr const char *rules_name = "rules";  // in the server's directory, as homes_folder
inline constexpr const char *homes_folder = "home";
inline constexpr std::uint32_t first_login = 1000, nobody_id = 65534;  // below: the system's own accounts
inline constexpr std::uint32_t usual_images_mb = 32'768;
inline constexpr std::uint32_t first_made_up = 2'000'000'000, last_made_up = 2'000'065'535;

struct OwnerRules {
    bool users = false;                 // grains run under accounts of their own; false: under the server's
    std::vector<std::string> accounts;  // logins that may be used
    std::uint32_t first = first_made_up, last = last_made_up;  // range of anonymous uids
    Limits limits;
    std::uint32_t rungs = 0;                    // Rungs that every grain has at least
    std::vector<std::string> writable;          // writable directories besides rooms and homes
    std::string homes;                          // the directory of users' homes
    std::uint32_t images_mb = usual_images_mb;  // of unpacked images
    bool ordinary_priority = false;             // of grains; false: the lowest
    bool operator==(const OwnerRules &) const = default;
};
std::string pack(const OwnerRules &rules);
Result<OwnerRules> unpack_rules(std::string_view bytes);

// The accounts of this host.
struct Logins {
    virtual ~Logins() = default;
    // The login name of that uid, if there is one.
    virtual std::optional<std::string> name_of(std::uint32_t uid) const = 0;
    // uid, gid and groups of a login that `rules` permit, or the reason why it cannot be used.
    virtual Result<Account> login(const OwnerRules &rules, const std::string &name) const = 0;
};
const Logins &logins_of_this_host();

// Code::refused: the part of the record that exceeds the rules.
Status permits(const OwnerRules &rules, const LaunchRecord &record, const Logins &logins);
Status permits(const OwnerRules &rules, const Account &account, const Logins &logins);

}  // namespace dcs::files
