#pragma once
// What the scheduler measures of itself, for dashboards: how long calls and commits take, and since when grains wait.
// Nothing of it is decided or recorded; it starts from nothing with the process.
#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "base/instant.h"
#include "scheduler/state/input.h"
#include "scheduler/state/state.h"

namespace dcs::turn {

class Figures {
public:
    enum class Of : std::uint8_t { submit, wait, query, change, report, commit };
    static constexpr std::array<std::uint64_t, 12> bounds_us = {
        500, 1000, 2500, 5000, 10'000, 25'000, 50'000, 100'000, 250'000, 1'000'000, 2'500'000, 10'000'000};

    // As what an input counts; nothing: it is not counted.
    static std::optional<Of> kind_of(const core::Input &input);
    void took(Of of, Duration d);
    // Remembers which grains of the queues are new since the last look: their waiting begins here.
    void look(const core::State &state, Instant now);
    Instant next_look() const { return next_look_; }
    // Fills in what the State does not know.
    void tell(const core::State &state, Instant now, wire::SystemRow &row);

private:
    struct Spread {
        std::array<std::uint64_t, bounds_us.size() + 1> counts = {};
        std::uint64_t sum_us = 0;
    };
    // The positions of a session's queue, by when they were given out: from each key to the next one.
    struct Queue {
        std::int64_t front = 0, back = 0;
        std::map<std::int64_t, Instant> since;
    };
    static constexpr std::size_t kinds = static_cast<std::size_t>(Of::commit) + 1;
    static void look_at(Queue &queue, const core::Session &session, Instant now);
    Duration oldest(const core::State &state, Instant now) const;

    std::array<Spread, kinds> spreads_;
    std::map<SessionKey, Queue> queues_;  // of active sessions
    Instant next_look_{};
};

}  // namespace dcs::turn
