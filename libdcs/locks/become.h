#pragma once
// Runs in which the command replaces the calling process. With Keep::exec a separate process, the keeper, keeps the
// lock whatever the command closes, enforces the limit, and records the end.
#include "locks/supervision.h"

namespace dcs::locks {

// The owner that describes process `pid`.
Owner owner_of(const World &world, const Supervision &what, pid_t pid, std::uint64_t cookie);

// Returns only if the command could not be executed; no keeper is left then.
RunEnd become(const World &world, const Supervision &what, std::uint64_t cookie);

}  // namespace dcs::locks
