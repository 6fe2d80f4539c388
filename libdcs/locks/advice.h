#pragma once
// The report of `dcs_lock advise` on an atom: the limits that would be learned, the evidence, and the predicted error.
// It changes no limit.
#include <cstdint>
#include <string>
#include <vector>

#include "locks/learn.h"

namespace dcs::locks {

// Runs that recur at regular times and take many times as long as the others. One limit cannot fit both kinds.
struct Peaks {
    std::size_t runs = 0;      // 0: there are none
    double ratio = 0;          // the shortest of them over the longest of the others
    std::int64_t every = 0;    // nanoseconds from one to the next
    std::vector<Sample> rest;  // the samples without them
};
Peaks peaks_of(const std::vector<Sample> &samples);

// "90s", "15m", "2.5h": in the syntax of the command line, rounded up to a tenth; "never" for no_limit.
std::string duration_text(std::int64_t nanoseconds);

// Several lines, each ending in a newline. `name` is the atom's name as the user wrote it.
std::string advice(const std::string &name, const std::vector<Sample> &samples, const std::vector<Denial> &denials,
                   const LearnBounds &bounds, std::int64_t interval_hint);

}  // namespace dcs::locks
