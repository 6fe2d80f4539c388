#pragma once
// `dcs up` and `dcs down` work on one pool one after the other.
#include "locks/dcs_atoms.h"
#include "commands/dcs/frame/pool_directory.h"

namespace dcs::commands {

// Waits until the lock DIR/up.lock is free, at most two minutes.
Result<locks::AdaptiveLock> take_work_lock(const Pool &pool);

}  // namespace dcs::commands
