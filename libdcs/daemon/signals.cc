#include "daemon/signals.h"

#include <cerrno>
#include <csignal>
#include <sys/signalfd.h>
#include <unistd.h>

namespace dcs::daemon {

Result<int> open_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
    if (::pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0)
        return fail_errno(Code::internal, "cannot block signals", errno);
    std::signal(SIGPIPE, SIG_IGN);
    const int fd = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) return fail_errno(Code::limit, "cannot make a signal descriptor", errno);
    return fd;
}

int read_signal(int fd) {
    signalfd_siginfo info{};
    ssize_t n = 0;
    do n = ::read(fd, &info, sizeof info);
    while (n < 0 && errno == EINTR);
    return n == static_cast<ssize_t>(sizeof info) ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace dcs::daemon
