#pragma once
// One arrived frame -> the typed input that the core decides, or an answer on the spot: greetings,
// and everything that is refused before it could matter.
#include "scheduler/turn/decoded.h"

namespace dcs::turn {

// `arrival` is a frame of a connection in `context.connections`.
Decoded decode(DecodeContext &context, const Arrival &arrival);

// What is wrong with a submission, whatever the state of its session.
Status check_spec(const wire::GrainSpec &spec);

}  // namespace dcs::turn
