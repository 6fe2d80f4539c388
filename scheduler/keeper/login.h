#pragma once
// Who of another host's users is known here: this host's tables of users and groups.
#include <string>

#include "base/status.h"

namespace dcs::keeper {

// refused: this host has no such user, or the user is not in the group. An empty group: all are, known here or not.
// May look up names at a server of the site.
Status check_login(const std::string &user, const std::string &group);

}  // namespace dcs::keeper
