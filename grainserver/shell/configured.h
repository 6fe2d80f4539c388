#pragma once
// What the scheduler has said to this server, kept for its next start: the file `configured` of its directory `server`.
#include "base/status.h"
#include "grainserver/core/state.h"

namespace dcs::server {

inline constexpr const char *configured_name = "configured";

// Leaves `state` alone if there is no such file, or it holds something else. `directory` is open.
void load_configured(int directory, State &state);
// After a power failure there is the old file or the new one.
Status save_configured(int directory, const State &state);

}  // namespace dcs::server
