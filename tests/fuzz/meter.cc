#include "meter.h"

#include <algorithm>
#include <ctime>
#include <map>

namespace dcs::fuzz {
namespace {

std::uint64_t thread_ns() {
    timespec t = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

struct Worst {
    double each = 0;
    std::size_t input = 0;
};
std::map<std::string, Worst> worst;

}  // namespace

std::string worst_memory() {
    std::string text;
    for (const auto &[what, most] : worst)
        text += what + ": " + std::to_string(most.each) + " bytes for each of " + std::to_string(most.input) + "\n";
    return text;
}

Meter::Meter() : bytes_(bytes_allocated()), steps_(allocations()), ns_(thread_ns()) {}

void Meter::expect_memory(std::size_t input, std::size_t each, std::size_t room, const char *what) const {
    const std::uint64_t spent = bytes_allocated() - bytes_;
    const double ratio = static_cast<double>(spent) / static_cast<double>(std::max<std::size_t>(input, 1));
    if (input >= 1024 && ratio > worst[what].each) worst[what] = {ratio, input};
    expect(spent <= input * each + room, std::string(what) + ": " + std::to_string(input) + " bytes had " +
                                             std::to_string(spent) + " bytes allocated for them");
}

void Meter::expect_steps(std::size_t input, std::size_t each, std::size_t room, const char *what) const {
    const std::uint64_t spent = allocations() - steps_;
    expect(spent <= input / each + room,
           std::string(what) + ": " + std::to_string(input) + " bytes took " + std::to_string(spent) + " allocations");
}

void Meter::expect_time(std::size_t input, std::size_t each_ns, const char *what) const {
    const std::uint64_t spent = thread_ns() - ns_;
    expect(spent <= input * each_ns + 1'000'000'000, std::string(what) + ": " + std::to_string(input) + " bytes took " +
                                                         std::to_string(spent / 1'000'000) + " ms");
}

}  // namespace dcs::fuzz
