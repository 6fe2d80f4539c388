#pragma once
// Runs a command under locks that are held already, keeps them as long as they must be kept, ends the
// command's whole tree at its limit, and says what became of it. What `dcs_lock NAME CMD` does.
#include "locks/supervision.h"

namespace dcs::locks {

// Signals INT, TERM, HUP, QUIT, USR1, USR2 are passed on to the command; expire_request ends it as its limit would.
// They stay blocked, so that who called can write down what it has to. Returns only when nothing that was to be
// ended runs any more. Returns with Keep::exec and Keep::fd only if it failed. The caller has no other threads.
RunEnd supervise(const World &world, const Supervision &what);

}  // namespace dcs::locks
