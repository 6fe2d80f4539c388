#pragma once
// Numbers drawn for one purpose each, so that one that is not drawn any more shifts no others.
#include <string_view>

#include "base/instant.h"
#include "support/sim_disk.h"

namespace dcs::sim {

using test::Random;

constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    std::uint64_t z = a ^ (b + 0x9E3779B97F4A7C15ull + (a << 6) + (a >> 2));
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

constexpr std::uint64_t mix(std::uint64_t a, std::string_view text) {
    for (const char c : text) a = mix(a, static_cast<unsigned char>(c));
    return a;
}

inline Random random_for(std::uint64_t seed, std::string_view purpose, std::uint64_t number = 0) {
    return Random(mix(mix(seed, purpose), number));
}

// Between, bounds included.
inline std::int64_t between(Random &r, std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(r.below(static_cast<std::uint64_t>(high - low) + 1));
}
inline Duration between(Random &r, Duration low, Duration high) { return Duration{between(r, low.ns, high.ns)}; }

// Small values as likely as large ones: the magnitude is drawn first.
inline std::int64_t spread(Random &r, std::int64_t low, std::int64_t high) {
    std::int64_t top = low;
    int doublings = 0;
    while (top < high / 2) {
        top *= 2;
        ++doublings;
    }
    const int n = static_cast<int>(r.below(static_cast<std::uint64_t>(doublings) + 1));
    std::int64_t base = low;
    for (int i = 0; i < n; ++i) base *= 2;
    return std::min(high, between(r, base, std::max(base, std::min(high, 2 * base))));
}
inline Duration spread(Random &r, Duration low, Duration high) { return Duration{spread(r, low.ns, high.ns)}; }

}  // namespace dcs::sim
