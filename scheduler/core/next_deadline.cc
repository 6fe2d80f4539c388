#include "scheduler/state/decision.h"

namespace dcs::core {

Instant next_deadline(const State &state) {
    const Instant hosts = state.deadlines.empty() ? Instant::never() : state.deadlines.begin()->first;
    const Instant lapses = state.lapses.empty() ? Instant::never() : state.lapses.begin()->first;
    const Instant rested = state.resting.empty() ? Instant::never() : state.resting.begin()->first;
    return std::min(std::min(hosts, state.backup.patience), std::min(lapses, rested));
}

}  // namespace dcs::core
