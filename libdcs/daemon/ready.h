#pragma once
namespace dcs::daemon {
// Says that the daemon serves now: writes "ready\n" to `ready_fd` and closes it (negative: none),
// and READY=1 to the service manager that $NOTIFY_SOCKET names, if any. Failures are nobody's loss.
void say_ready(int ready_fd);
}  // namespace dcs::daemon
