#pragma once
// Runs where the command takes over this very process. With Keep::exec a process beside it keeps the lock,
// whatever the command closes, enforces the limit, and writes down the end.
#include "locks/supervision.h"

namespace dcs::locks {

// Who runs as process `pid`.
Owner owner_of(const World &world, const Supervision &what, pid_t pid, std::uint64_t cookie);

// Returns only if the command could not be executed; there is no keeper then.
RunEnd become(const World &world, const Supervision &what, std::uint64_t cookie);

}  // namespace dcs::locks
