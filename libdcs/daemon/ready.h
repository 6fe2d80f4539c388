#pragma once
// "I serve now", to whoever started this daemon.
#include <string>

#include "base/status.h"

namespace dcs {

// Writes "ready\n" to fd and closes it; fd < 0: nothing to do. A reader that has gone is no failure.
Status tell_ready(int fd);

// One datagram ("READY=1", "STOPPING=1", "STATUS=...") to the service manager that $NOTIFY_SOCKET names,
// a path or "@abstract"; nothing to do without one.
Status notify_service_manager(const std::string &state);

}  // namespace dcs
