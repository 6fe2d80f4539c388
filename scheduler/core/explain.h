#pragma once
// What keeps a ready grain from a host. Asks the functions of placement.h, in an order that
// puts what lasts before what passes.
#include "scheduler/core/placement.h"
#include "scheduler/core/reasons.h"

namespace dcs::core {

Why why_not(const State &state, Instant now, HostId id, const GrainKey &key, const Grain &grain);
wire::Explanation explanation(const State &state, Instant now, const GrainKey &key);

}  // namespace dcs::core
