#pragma once
// The grain server's decisions: what happened goes in, what must be done comes out, in that order.
// Pure: no clock, no file, no process; time and the random number are handed in.
#include <vector>

#include "grainserver/core/input_effect.h"

namespace dcs::server {

// `jitter` is a fresh random number in [0, 1).
std::vector<Effect> step(State &state, Instant now, double jitter, Input input);

}  // namespace dcs::server
