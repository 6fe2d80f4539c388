#pragma once
// What reading foreign bytes costs: bytes allocated (whether they are given back or not), how often, and processor
// time, for each byte of input. A decoder for which these are not bounded by a constant is a way to stall or end a
// daemon with a small message. Memory and allocations are the same whenever an input runs; time tells apart only what
// is not linear.
#include <cstdint>
#include <string>

#include "fuzz.h"

namespace dcs::fuzz {

// Since the process began, by this thread and all others (driver.cc).
std::uint64_t bytes_allocated();
std::uint64_t allocations();

// The most bytes that were allocated for a byte of any input of 1 KiB or more, by what was read, for people.
std::string worst_memory();

class Meter {
public:
    Meter();
    // `input`: bytes that were read. Fails with `what` if they cost more than `each` bytes of memory each, beside
    // `room` bytes.
    void expect_memory(std::size_t input, std::size_t each, std::size_t room, const char *what) const;
    // Fails if more than one allocation was made for `each` of the bytes, beside `room` of them.
    void expect_steps(std::size_t input, std::size_t each, std::size_t room, const char *what) const;
    // Fails if they cost more than `each_ns` of processor time each, beside a second. With sanitizers everything is ten
    // times as slow; this tells apart only what is not linear.
    void expect_time(std::size_t input, std::size_t each_ns, const char *what) const;

private:
    std::uint64_t bytes_, steps_, ns_;
};

}  // namespace dcs::fuzz
