#include "ending_signals.h"

namespace dcs::commands {

sigset_t block_ending_signals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (int number : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction now = {};
        // A blocked signal would come through even where it is ignored.
        if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) ::sigaddset(&signals, number);
    }
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    return signals;
}

bool is_asked_to_end() {
    sigset_t pending;
    if (::sigpending(&pending) != 0) return false;
    for (int number : {SIGINT, SIGTERM, SIGHUP})
        if (::sigismember(&pending, number) == 1) return true;
    return false;
}

}  // namespace dcs::commands
