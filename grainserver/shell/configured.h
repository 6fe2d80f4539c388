#pragma once
// The scheduler's configuration of this server, for its next start: the file `configured` in the directory `server`.
#include "base/status.h"
#include "grainserver/core/state.h"

namespace dcs::server {

inline constexpr const char *configured_name = "configured";

// Does not change `state` if there is no such file, or its content is invalid. `directory` is a descriptor.
void load_configured(int directory, State &state);
// Atomic: after a power failure the file is the old or the new one.
Status save_configured(int directory, const State &state);

}  // namespace dcs::server
