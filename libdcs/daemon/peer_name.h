#pragma once
// Which user of this host a peer's uid is. A user is a login: a user who may create uids without one, in a delegated
// range, is still one user.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/instant.h"
#include "base/status.h"

namespace dcs {

// What the tables of this host say of a uid.
struct KnownPeer {
    std::string login;  // empty: none
    Status may_call;    // with a login: why it may not call, if so
};

// Found answers count for a minute, the others for some seconds; then the tables are asked again, as a uid may be
// given to another person, or a person taken out of a group.
class PeerNames {
public:
    // Or why the tables cannot be asked: then what they said before counts on. Code::not_found: so it seems, but a part
    // of them could not be asked.
    using LookUp = std::function<Result<KnownPeer>(std::uint32_t)>;
    explicit PeerNames(LookUp look_up) : look_up_(std::move(look_up)) {}
    // The name that sessions of `uid` belong to. `own`: root, or the account that this process runs under, which needs
    // no login. "uid1234" for those without one, and for a login that cannot name a session's owner (too long, not of
    // [A-Za-z0-9._-], or looking like the number of another uid). Code::refused: it may not call; says why. Any other
    // code: who it is is not known for now.
    Result<std::string> of(std::uint32_t uid, bool own, Instant now);
    // The tables were changed.
    void forget();

private:
    struct Entry {
        Result<KnownPeer> peer;
        Instant until;
        bool good() const { return peer && !peer->login.empty() && peer->may_call; }
    };
    const Result<KnownPeer> &look_up(std::uint32_t uid, Instant now);
    LookUp look_up_;
    std::map<std::uint32_t, Entry> known_;  // bounded
};

struct LocalGroup {
    std::uint32_t number = 0;
    std::vector<std::string> members;  // that it names; logins whose own group it is need not be among them
};
// not_found: there is no such group; or why it cannot be looked up.
Result<LocalGroup> find_group(const std::string &group);
Result<std::uint32_t> group_number(const std::string &group);

// Is `name`, found for `uid`, fit to be used?
bool usable_login_name(const std::string &name, std::uint32_t uid);

}  // namespace dcs
