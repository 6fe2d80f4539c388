#pragma once
// Who of another host's users is known here: this host's tables of users and groups.
#include <string>

#include "base/status.h"

namespace dcs::keeper {

// refused: there is no such user here, or he is not of that group. An empty group: everybody is, known here or not.
// May look up names at a server of the site.
Status check_login(const std::string &user, const std::string &group);

}  // namespace dcs::keeper
