#pragma once
// What is said of what is not there.
#include "base/status.h"
#include "scheduler/state/state.h"

namespace dcs::core {

// session_unknown; or io_error when it is there but set aside as damaged.
Status missing_session(const State &state, const SessionKey &key);
// grain_unknown; or io_error when it is there but set aside as damaged.
Status missing_grain(const State &state, const GrainKey &key);

}  // namespace dcs::core
