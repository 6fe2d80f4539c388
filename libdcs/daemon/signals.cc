#include "daemon/signals.h"

#include <cerrno>
#include <csignal>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace dcs {

Result<Signals> Signals::open() {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
    if (int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0)
        return fail_errno(Code::internal, "cannot block signals", error);
    for (const int of_write : {SIGPIPE, SIGXFSZ}) std::signal(of_write, SIG_IGN);
    Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) return fail_errno(Code::internal, "cannot receive signals", errno);
    return Signals(std::move(fd));
}

int Signals::next() {
    signalfd_siginfo info = {};
    ssize_t n;
    do { n = ::read(fd(), &info, sizeof info); } while (n < 0 && errno == EINTR);
    return n == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace dcs
