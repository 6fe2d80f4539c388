#pragma once
// CPU time of this thread, for figures only: nothing is decided by it.
#include "base/instant.h"

namespace dcs::sim {

Duration thread_time();

// Adds what passes between its two ends to a sum, if it is switched on.
class Stopwatch {
public:
    Stopwatch(bool on, Duration &sum) : sum_(on ? &sum : nullptr), start_(on ? thread_time() : Duration{}) {}
    ~Stopwatch() {
        if (sum_) *sum_ = *sum_ + Duration{thread_time().ns - start_.ns};
    }
    Stopwatch(const Stopwatch &) = delete;

private:
    Duration *sum_;
    Duration start_;
};

}  // namespace dcs::sim
