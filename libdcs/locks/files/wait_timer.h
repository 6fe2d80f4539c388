#pragma once
// Makes a blocking system call of this thread fail with EINTR after a deadline: the timer fires at the deadline and
// then every 10 ms, because a signal just before the call would be missed.
#include <csignal>
#include <cstdint>
#include <ctime>

namespace dcs::locks {

class WaitTimer {
public:
    explicit WaitTimer(std::int64_t boot_ns);  // CLOCK_BOOTTIME; INT64_MAX: no timer
    WaitTimer(const WaitTimer &) = delete;
    WaitTimer &operator=(const WaitTimer &) = delete;
    ~WaitTimer();
    bool passed() const;
    bool works() const { return works_; }  // false: the kernel provided no timer; the caller must not wait

private:
    std::int64_t deadline_;
    timer_t timer_ = {};
    bool armed_ = false, works_ = true;
    sigset_t before_ = {};
};

}  // namespace dcs::locks
