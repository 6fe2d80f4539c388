#pragma once
// Who of another host's users is known here: this host's tables of users and groups.
#include <string>

#include "base/status.h"

namespace dcs::keeper {

// refused: this host has no such user, or the user is not in the group. An empty group: all are, known here or not.
// May look up names at a server of the site.
Status check_login(const std::string &user, const std::string &group);

// not_found: this host has no such login. unreachable: the server of the site that knows does not answer; that takes no
// longer than some seconds.
Status knows_login(const std::string &user);

}  // namespace dcs::keeper
