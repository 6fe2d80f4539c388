#include "ending_signals.h"

#include <initializer_list>

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

}  // namespace dcs::commands
