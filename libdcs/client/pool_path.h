#pragma once
// Where the pool is: $DCS_DIR, else $XDG_STATE_HOME/dcs, else ~/.local/state/dcs.
#include <string>

#include "base/status.h"

namespace dcs::client {
Result<std::string> pool_directory();  // absolute
}  // namespace dcs::client
