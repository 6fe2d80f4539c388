#include "scheduler/shell/server_processes.h"

#include <unistd.h>

#include "base/limits.h"
#include "base/require.h"

namespace dcs::shell {
namespace {
constexpr int nr_pidfd_open = 434;  // everywhere; headers of older systems lack it
}

ServerProcesses::~ServerProcesses() {
    while (!by_pid_.empty()) forget(by_pid_.begin());
}

void ServerProcesses::forget(std::map<pid_t, One>::iterator it) {
    DCS_REQUIRE(it->second.fd, "a process is watched by its descriptor");
    loop_.unwatch(it->second.fd.get());
    by_pid_.erase(it);
}

// Should the number mean another process by now, that one lives, and the host is waited for as one that is silent.
void ServerProcesses::called_in(ConnId conn, pid_t pid) {
    if (const auto before = by_pid_.find(pid); before != by_pid_.end()) forget(before);
    if (pid <= 0 || by_pid_.size() >= limits::connections) return;
    Fd fd(static_cast<int>(::syscall(nr_pidfd_open, pid, 0)));
    if (!fd) return;
    loop_.watch(fd.get());
    by_pid_[pid] = One{std::move(fd), conn};
}

std::optional<ConnId> ServerProcesses::ended(int watch) {
    for (auto it = by_pid_.begin(); it != by_pid_.end(); ++it) {
        if (it->second.fd.get() != watch) continue;
        const ConnId conn = it->second.conn;
        forget(it);
        return conn;
    }
    return std::nullopt;
}

}  // namespace dcs::shell
