#include "scheduler/turn/age_clock.h"

#include <algorithm>

namespace dcs::turn {
namespace {

// An operator or a time service corrects the clock in the meantime.
constexpr Duration after_start = seconds(3600), after_jump = seconds(24 * 3600), after_change = after_jump;
// A pool in which no session begins or ends for longer is rare, and then nothing is lost by waiting.
constexpr std::int64_t most_ahead_ms = std::int64_t{24} * 3600 * 1000, ns_of_ms = 1'000'000;

}  // namespace

void AgeClock::start(Instant now, std::int64_t wall_ms, std::int64_t recorded_ms) {
    seen_ = now;
    seen_wall_ms_ = held_ms_ = wall_ms;
    young_until_ = now + after_start;
    if (recorded_ms > 0 && wall_ms > recorded_ms) jumped(now, wall_ms, wall_ms - recorded_ms);
}

void AgeClock::shortened(Instant now, std::int64_t wall_ms) {
    young_until_ = std::max(young_until_, now + after_change);
    held_ms_ = wall_ms;
}

void AgeClock::jumped(Instant now, std::int64_t wall_ms, std::int64_t by_ms) {
    if (by_ms <= most_ahead_ms) return;
    jumped_until_ = now + after_jump;
    jump_ms_ = by_ms;
    held_ms_ = wall_ms;
}

AgeClock::Verdict AgeClock::judge(Instant now, std::int64_t wall_ms) {
    jumped(now, wall_ms, wall_ms - seen_wall_ms_ - (now - seen_).ns / ns_of_ms);
    seen_ = now;
    seen_wall_ms_ = wall_ms;
    if (now < jumped_until_) return Verdict::jumped;
    return now < young_until_ ? Verdict::young : Verdict::trusted;
}

}  // namespace dcs::turn
