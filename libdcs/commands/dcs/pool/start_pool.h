#pragma once
// The daemons of a private pool, each with what the numbers of the pool say of it.
#include <string>
#include <vector>

#include "base/status.h"
#include "commands/dcs/frame/pool_directory.h"

namespace dcs::commands {

// Root follows no link of another user, who could have it make, change and stop what is not a pool's.
Status is_ours(const std::string &directory);
// A directory that holds other people's things must not become a pool by a slip of the finger.
Status only_a_pool(const Pool &pool);
// A scheduler without its store would begin an empty one, as if the pool had never done anything.
bool only_the_copy_is_left(const Pool &pool);

// Those that do not run; adds their names to `started`.
Status start_missing(const Pool &pool, const PoolNumbers &numbers, std::vector<std::string> &started);
Status start_page(const Pool &pool, std::vector<std::string> &started);

}  // namespace dcs::commands
