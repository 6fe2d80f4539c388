#include "scheduler/core/decision.h"

namespace dcs::core {

Instant next_deadline(const State &state) {
    return state.deadlines.empty() ? Instant::never() : state.deadlines.begin()->first;
}

}  // namespace dcs::core
