#include "locks/files/wait_timer.h"

#include <mutex>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"

namespace dcs::locks {
namespace {

void do_nothing(int) {}

int wait_signal() { return SIGRTMAX - 1; }

void install_handler() {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action = {};
        action.sa_handler = do_nothing;  // without SA_RESTART, so that the call returns
        ::sigaction(wait_signal(), &action, nullptr);
    });
}

}  // namespace

WaitTimer::WaitTimer(std::int64_t boot_ns) : deadline_(boot_ns) {
    if (boot_ns == INT64_MAX) return;
    install_handler();
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = wait_signal();
    event._sigev_un._tid = ::gettid();
    works_ = ::timer_create(CLOCK_BOOTTIME, &event, &timer_) == 0;
    if (!works_) return;
    armed_ = true;
    sigset_t ours;
    ::sigemptyset(&ours);
    ::sigaddset(&ours, wait_signal());
    ::pthread_sigmask(SIG_UNBLOCK, &ours, &before_);
    itimerspec when = {};
    when.it_value.tv_sec = boot_ns / 1'000'000'000;
    when.it_value.tv_nsec = boot_ns % 1'000'000'000;
    if (boot_ns <= 0) when.it_value.tv_nsec = 1;  // zero would disarm the timer

    when.it_interval.tv_nsec = 10'000'000;
    ::timer_settime(timer_, TIMER_ABSTIME, &when, nullptr);
}

WaitTimer::~WaitTimer() {
    if (!armed_) return;
    ::timer_delete(timer_);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool WaitTimer::passed() const {
    if (deadline_ == INT64_MAX) return false;
    return boot_clock().ns >= deadline_;
}

}  // namespace dcs::locks
