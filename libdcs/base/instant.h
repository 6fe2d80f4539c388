#pragma once
// Time as the cores see it: 64-bit nanoseconds that were read somewhere else and handed in.
// An Instant counts from an arbitrary origin that does not step (CLOCK_BOOTTIME in the daemons,
// virtual time in the simulator); only differences mean anything.
#include <algorithm>
#include <compare>
#include <cstdint>

namespace dcs {

struct Duration {
    std::int64_t ns = 0;
    auto operator<=>(const Duration &) const = default;
    double seconds() const { return static_cast<double>(ns) / 1e9; }
};

struct Instant {
    std::int64_t ns = 0;
    auto operator<=>(const Instant &) const = default;
    static constexpr Instant never() { return Instant{INT64_MAX}; }
};

constexpr Duration milliseconds(std::int64_t n) { return Duration{n * 1'000'000}; }
constexpr Duration seconds(std::int64_t n) { return Duration{n * 1'000'000'000}; }
// Of a number that is one; of more than the nanoseconds can say, about as many as they can.
constexpr Duration seconds_of(double s) { return Duration{static_cast<std::int64_t>(std::clamp(s, -9e9, 9e9) * 1e9)}; }

// Saturating, so that never() + anything stays never().
constexpr Instant operator+(Instant t, Duration d) {
    if (d.ns > 0 && t.ns > INT64_MAX - d.ns) return Instant::never();
    return Instant{t.ns + d.ns};
}
constexpr Duration operator-(Instant a, Instant b) { return Duration{a.ns - b.ns}; }
constexpr Duration operator+(Duration a, Duration b) { return Duration{a.ns + b.ns}; }
constexpr Duration operator*(Duration a, std::int64_t n) { return Duration{a.ns * n}; }
constexpr Duration operator/(Duration a, std::int64_t n) { return Duration{a.ns / n}; }

}  // namespace dcs
