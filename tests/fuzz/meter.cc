#include "meter.h"

#include <ctime>

namespace dcs::fuzz {
namespace {

std::uint64_t thread_ns() {
    timespec t = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace

Meter::Meter() : bytes_(bytes_allocated()), steps_(allocations()), ns_(thread_ns()) {}

void Meter::expect_memory(std::size_t input, std::size_t each, std::size_t room, const char *what) const {
    const std::uint64_t spent = bytes_allocated() - bytes_;
    expect(spent <= input * each + room, std::string(what) + ": " + std::to_string(input) + " bytes had " +
                                             std::to_string(spent) + " bytes allocated for them");
}

void Meter::expect_steps(std::size_t input, std::size_t each, std::size_t room, const char *what) const {
    const std::uint64_t spent = allocations() - steps_;
    expect(spent <= input / each + room, std::string(what) + ": " + std::to_string(input) + " bytes took " +
                                             std::to_string(spent) + " allocations");
}

void Meter::expect_time(std::size_t input, std::size_t each_ns, const char *what) const {
    const std::uint64_t spent = thread_ns() - ns_;
    expect(spent <= input * each_ns + 1'000'000'000, std::string(what) + ": " + std::to_string(input) + " bytes took " +
                                                         std::to_string(spent / 1'000'000) + " ms");
}

}  // namespace dcs::fuzz
