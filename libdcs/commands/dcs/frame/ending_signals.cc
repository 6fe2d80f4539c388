#include "ending_signals.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include "console.h"

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

void end_by(int number) {
    if (number == SIGINT) {
        ::signal(number, SIG_DFL);
        sigset_t alone;
        ::sigemptyset(&alone);
        ::sigaddset(&alone, number);
        ::pthread_sigmask(SIG_UNBLOCK, &alone, nullptr);
        ::raise(number);
    }
    std::_Exit(128 + number);
}

void obey_ending_signals(sigset_t signals, Console &console, const std::function<std::string()> &last_words) {
    int number = 0;
    while (::sigwait(&signals, &number) != 0) {}
    std::thread([number] {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        end_by(number);
    }).detach();
    console.note(last_words());
    console.flush();
    end_by(number);
}

}  // namespace dcs::commands
