#pragma once
// Tells the process that started this daemon with --ready-fd that it serves; daemon/notify.h tells a service manager.
#include "base/status.h"

namespace dcs {

// Writes "ready\n" to fd and closes it; fd < 0: nothing to do. A reader that has gone is no failure.
Status tell_ready(int fd);

}  // namespace dcs
