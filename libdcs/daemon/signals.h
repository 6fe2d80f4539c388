#pragma once
// Signals as a readable descriptor, so that they arrive in the event loop like everything else.
#include "base/status.h"

namespace dcs::daemon {

// Blocks TERM, INT and HUP for the process (call before any thread starts), ignores PIPE, and
// returns a non-blocking descriptor that is readable while one is pending; the caller owns it.
Result<int> open_signals();

// The next pending signal's number, 0 if there is none.
int read_signal(int fd);

}  // namespace dcs::daemon
