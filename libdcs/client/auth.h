#pragma once
// Who a program is: d_get_auth, and what dcs_begin left for it.
#include <string>

#include "client/pool.h"

namespace dcs::client {

// Takes the credentials that dcs_begin left if the scheduler is on another host; at `fd`, or where the environment
// says.
Status adopt_remote(Pool &pool);
Status adopt(Pool &pool, int fd);
Status check_ident(const char *ident);
Status get_auth(Pool &pool, const std::string &ident);

}  // namespace dcs::client
