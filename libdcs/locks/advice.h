#pragma once
// What `dcs_lock advise` says of an atom: the limits that would be learned, why, and how wrong they may be.
// Nothing of it is applied.
#include <cstdint>
#include <string>
#include <vector>

#include "locks/learn.h"

namespace dcs::locks {

// Runs that come at regular times and take many times as long as the others. One limit cannot fit both.
struct Peaks {
    std::size_t runs = 0;     // 0: there are none
    double ratio = 0;         // the shortest of them over the longest of the others
    std::int64_t every = 0;   // nanoseconds from one to the next
    std::vector<Sample> rest; // the samples without them
};
Peaks peaks_of(const std::vector<Sample> &samples);

// "90s", "15m", "2.5h": as the command line takes it, rounded up to a tenth; "never" for no_limit.
std::string duration_text(std::int64_t nanoseconds);

// Several lines, the last with a newline. `name`: for people, as they call the atom.
std::string advice(const std::string &name, const std::vector<Sample> &samples, const std::vector<Denial> &denials,
                   const LearnBounds &bounds, std::int64_t interval_hint);

}  // namespace dcs::locks
