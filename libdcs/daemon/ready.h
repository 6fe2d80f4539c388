#pragma once
// "I serve now", to whoever started this daemon by --ready-fd; a service manager is told by daemon/notify.h.
#include "base/status.h"

namespace dcs {

// Writes "ready\n" to fd and closes it; fd < 0: nothing to do. A reader that has gone is no failure.
Status tell_ready(int fd);

}  // namespace dcs
