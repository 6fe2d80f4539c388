#pragma once
// The account of a grain. If the server is root: the user's own login, if both the
// scheduler and the owner of this host permit it, else an anonymous uid that is assigned to this user and
// recorded, so that no two users of a host ever share one.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/files/owner_rules.h"
#include "base/files.h"

namespace dcs::server {

inline constexpr const char *made_up_name = "anonymous-uids";  // the record of anonymous uids

struct IdentityOptions {
    bool users = false;                 // false: every grain runs under the server's account
    std::vector<std::string> accounts;  // logins that may be used, set by the host's owner
    std::vector<std::string> of_users;  // whose grains run here at all; empty: all that the scheduler gives
    std::uint32_t first = files::first_made_up, last = files::last_made_up;  // above all logins
};

// "ann,bob" or `none`; "2000000000-2000065535". Code::invalid with the reason, which names the option.
Result<std::vector<std::string>> parse_logins(const std::string &option, const std::string &text, const char *none);
Status parse_uids(const std::string &text, std::uint32_t &first, std::uint32_t &last);

class Identities {
public:
    // The lock file of servers that share the directory; created while this process may still set its mode.
    static Status make_lock(const std::string &directory);
    // `directory`: absolute, contains the record of anonymous uids, for all servers that share it. Code::io_error
    // if the record is unreadable: assigning uids again could give one user another's files. Code::invalid if it
    // has a uid that `options` do not permit: its user's grains could never start.
    Status open(const std::string &directory, const IdentityOptions &options,
                const files::Logins &logins = files::logins_of_this_host());
    bool users() const { return rules_.users; }
    // `own_account`: the scheduler requests the user's login. `note`: why it is not used. Code::refused: no grain of
    // this user runs here, whatever the scheduler's host table says.
    Result<files::Account> of(const std::string &user, bool own_account, std::string &note);

private:
    Status read();
    Status add(const std::string &name);
    Status permitted() const;
    Result<files::Account> made_up(const std::string &user);

    files::OwnerRules rules_;
    std::vector<std::string> of_users_;
    const files::Logins *logins_ = nullptr;
    std::string directory_;
    Fd fd_;
    std::map<std::string, std::uint32_t> uids_;  // by encoded user name
};

}  // namespace dcs::server
