#pragma once
// The grain server's decisions: inputs in, effects out, in order.
// Pure: no clock, no file, no process; time and the random number are arguments.
#include <vector>

#include "grainserver/core/input_effect.h"

namespace dcs::server {

// `jitter` is a fresh random number in [0, 1).
std::vector<Effect> step(State &state, Instant now, double jitter, Input input);

}  // namespace dcs::server
