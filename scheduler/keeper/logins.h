#pragma once
// What the user database of the scheduler's host says of logins. Parts of it may be at a server of the site, which may
// not answer: then an answer is Code::unreachable after some seconds, and never that there is no such login.
#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"

namespace dcs::keeper {

// The login name of a uid; empty: there is none. Code::not_found: what could be asked knows none.
Result<std::string> login_of(std::uint32_t uid);

// Who of another host's users is known here, by this host's tables of users and groups.
// refused: this host has no such user, or the user is not in the group. An empty group: all are, known here or not.
Status check_login(const std::string &user, const std::string &group);

// not_found: this host has no such login.
Status knows_login(const std::string &user);

// What look() returns, in a thread of its own, which is left alone if it does not come back in time: the keeper has
// other work. `of` names what is looked up: it is not looked up twice at once, and a late answer is that of the next
// call. For half a minute after one was late, others have a fraction of a second: users whom a file of this host names
// are served, and all else does not wait long.
Result<std::string> in_time(const std::string &of, const std::function<Result<std::string>()> &look);

}  // namespace dcs::keeper
