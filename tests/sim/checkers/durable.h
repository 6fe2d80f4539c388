#pragma once
// The store and the State agree: what is rebuilt is what was lost, nothing is left behind, the disk holds
// less than twice what it must, and counters never go back.
#include <optional>
#include <string>

#include "scheduler/state/state.h"
#include "sim/clock.h"
#include "sim/scheduler_node.h"

namespace dcs::sim {

class Durable {
public:
    Durable(Clock &clock, Medium &medium) : clock_(clock), medium_(medium) {}
    void lost(const core::State &state, bool in_flight, std::uint64_t turn);
    void started(const core::State &state, store::Store &store);
    // Now and then, while nothing is in flight.
    void compare(const core::State &state, store::Store &store);

private:
    void check_space(const core::State &state, store::Store &store);

    Clock &clock_;
    Medium &medium_;
    std::optional<std::string> before_;  // text of the last committed turn, or of the one in flight
    std::uint64_t turn_ = 0;             // its number
    std::uint64_t last_turn_ = 0, next_seniority_ = 0;
};

}  // namespace dcs::sim
