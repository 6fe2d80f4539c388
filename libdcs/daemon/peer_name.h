#pragma once
// The login name that belongs to the uid of a peer.
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/status.h"

namespace dcs {

// "uid1234" for a uid without a login name, or with one that cannot name a session's owner (empty, too
// long, not of [A-Za-z0-9._-], or looking like the number of another uid).
class PeerNames {
public:
    using LookUp = std::function<std::string(std::uint32_t)>;
    explicit PeerNames(LookUp look_up) : look_up_(std::move(look_up)) {}  // who asks somebody else
    PeerNames();
    std::string of(std::uint32_t uid);

private:
    LookUp look_up_;
    std::map<std::uint32_t, std::string> known_;  // found names only; bounded
};

// As it stands in this host's tables; empty: nowhere.
std::string login_name(std::uint32_t uid);

// not_found: there is no such group; or why it cannot be looked up.
Result<std::uint32_t> group_number(const std::string &group);

// Is `name`, found for `uid`, fit to be used?
bool usable_login_name(const std::string &name, std::uint32_t uid);

}  // namespace dcs
