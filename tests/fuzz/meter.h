#pragma once
// What reading foreign bytes costs, for each byte of input: bytes allocated (whether they are given back or not), how
// often, steps, and processor time. A decoder for which these are not bounded by a constant is a way to stall or end a
// daemon with a small message. All but the time are the same whenever an input runs; time tells apart only what is not
// linear.
#include <cstdint>
#include <string>

#include "fuzz.h"

namespace dcs::fuzz {

// Since the process began, by this thread and all others (driver.cc).
std::uint64_t bytes_allocated();
std::uint64_t allocations();
// Reads of memory by code of DCS and by templates that it uses: each round of a loop has some. Those within functions
// of libraries, such as memcmp, count as none. 0 without the preset `fuzz`.
std::uint64_t steps();

// A line for each thing that was read: how often, and the most that a byte of it cost in inputs of 256 bytes or more.
std::string worst_costs();

// The most that something may cost: for each byte of it, and whatever its length.
struct Cost {
    std::size_t memory = 0, memory_beside = 0;
    std::size_t allocations = 1, allocations_beside = 64;
    std::size_t steps = 0, steps_beside = 10'000;
    std::size_t ns = 0, ns_beside = 1'000'000'000;  // with sanitizers everything is ten times as slow
};

class Meter {
public:
    Meter();
    // What of `most` has been exceeded for `input` bytes since the meter was made; "" if nothing.
    std::string excess(std::size_t input, const Cost &most) const;
    // Fails with `what`, a text that is kept, unless that is "". Counts for worst_costs().
    void expect(std::size_t input, const Cost &most, const char *what) const;

private:
    std::uint64_t bytes_, times_, steps_, ns_;
};

}  // namespace dcs::fuzz
