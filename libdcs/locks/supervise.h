#pragma once
// Runs a command under locks that the caller holds, keeps the locks as `what.keep` states, ends the command's whole
// tree at its limit, and reports the result. Implements `dcs_lock NAME CMD`.
#include "locks/supervision.h"

namespace dcs::locks {

// Passes INT, TERM, HUP, QUIT, USR1 and USR2 on to the command; expire_request ends it as its limit would. These
// signals stay blocked on return, so that the caller can record the end. Returns only when no process that was to be
// ended runs any more; with Keep::exec and Keep::fd only on failure. The caller has no other threads.
RunEnd supervise(const World &world, const Supervision &what);

}  // namespace dcs::locks
