#include "scheduler/core/decision.h"

namespace dcs::core {

Instant next_deadline(const State &state) {
    const Instant hosts = state.deadlines.empty() ? Instant::never() : state.deadlines.begin()->first;
    return std::min(hosts, state.backup.patience);
}

}  // namespace dcs::core
