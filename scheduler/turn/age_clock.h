#pragma once
// Whether the wall clock is good enough to remove something for its age: a clock that is a year ahead, even for one
// start, makes everything a year old, and what is removed does not come back.
#include <cstdint>

#include "base/instant.h"

namespace dcs::turn {

class AgeClock {
public:
    enum class Verdict : std::uint8_t { trusted, young, jumped };

    // At the start of the scheduler. `recorded_ms`: the latest time in its records, 0 if they have none.
    void start(Instant now, std::int64_t wall_ms, std::int64_t recorded_ms);
    // The policy's session_age became shorter, perhaps by a mistake: time to correct it.
    void shortened(Instant now, std::int64_t wall_ms);
    // young: the scheduler has just started, or removes sessions sooner than before. jumped: the clock was put
    // forward, here or between two starts.
    Verdict judge(Instant now, std::int64_t wall_ms);
    Instant trusted_from() const { return jumped_until_ > young_until_ ? jumped_until_ : young_until_; }
    std::int64_t jump_ms() const { return jump_ms_; }  // by how much it was put forward
    // What was old at that time waits for trusted_from(); what grows old later is expected to.
    std::int64_t held_ms() const { return held_ms_; }

private:
    void jumped(Instant now, std::int64_t wall_ms, std::int64_t by_ms);

    Instant young_until_{}, jumped_until_{}, seen_{};
    std::int64_t seen_wall_ms_ = 0, jump_ms_ = 0, held_ms_ = 0;
};

}  // namespace dcs::turn
