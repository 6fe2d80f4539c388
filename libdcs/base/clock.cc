#include "base/clock.h"

#include <ctime>

namespace dcs {
Instant boot_clock() {
    timespec t{};
    ::clock_gettime(CLOCK_BOOTTIME, &t);
    return Instant{static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec};
}
std::int64_t wall_clock_s() { return static_cast<std::int64_t>(::time(nullptr)); }
std::int64_t wall_clock_ms() {
    timespec t{};
    ::clock_gettime(CLOCK_REALTIME, &t);
    return static_cast<std::int64_t>(t.tv_sec) * 1000 + t.tv_nsec / 1'000'000;
}
}  // namespace dcs
