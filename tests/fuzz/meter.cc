#include "meter.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <string_view>

namespace dcs::fuzz {
namespace {

std::uint64_t thread_ns() {
    timespec t = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

constexpr std::size_t worth_noting = 256;  // of shorter ones the constant part is most

struct Worst {
    std::uint64_t inputs = 0, longest = 0;
    double memory = 0, steps = 0;
};
std::map<std::string_view, Worst> worst;

}  // namespace

std::string worst_costs() {
    std::string text;
    for (const auto &[what, most] : worst) {
        char figures[160];
        std::snprintf(figures, sizeof figures,
                      ": %llu read, up to %llu bytes; a byte: %.1f bytes of memory, %.1f steps\n",
                      static_cast<unsigned long long>(most.inputs), static_cast<unsigned long long>(most.longest),
                      most.memory, most.steps);
        text += "meter: " + std::string(what) + figures;
    }
    return text;
}

Meter::Meter() : bytes_(bytes_allocated()), times_(allocations()), steps_(fuzz::steps()), ns_(thread_ns()) {}

std::string Meter::excess(std::size_t input, const Cost &most) const {
    std::string text;
    const auto bound = [&](std::uint64_t spent, std::size_t each, std::size_t beside, const char *of) {
        if (spent > input * each + beside)
            text += (text.empty() ? "" : ", ") + std::to_string(spent) + " " + of + " for " + std::to_string(input) +
                    " bytes";
    };
    bound(bytes_allocated() - bytes_, most.memory, most.memory_beside, "bytes of memory");
    bound(allocations() - times_, most.allocations, most.allocations_beside, "allocations");
    bound(fuzz::steps() - steps_, most.steps, most.steps_beside, "steps");
    bound(thread_ns() - ns_, most.ns, most.ns_beside, "ns");
    return text;
}

void Meter::expect(std::size_t input, const Cost &most, const char *what) const {
    const std::uint64_t memory = bytes_allocated() - bytes_, steps = fuzz::steps() - steps_;
    const std::string over = excess(input, most);
    if (!over.empty()) fuzz::expect(false, std::string(what) + ": " + over);
    Worst &known = worst[what];
    ++known.inputs;
    if (input < worth_noting) return;
    const auto bytes = static_cast<double>(input);
    known.longest = std::max<std::uint64_t>(known.longest, input);
    known.memory = std::max(known.memory, static_cast<double>(memory) / bytes);
    known.steps = std::max(known.steps, static_cast<double>(steps) / bytes);
}

}  // namespace dcs::fuzz
