#pragma once
// A host table that was emptied or cut off by mistake must not end the work of a whole pool.
#include <string>
#include <vector>

#include "base/status.h"
#include "scheduler/state/state.h"

namespace dcs::shell {

// Has the table, read from `file`, a host that runs grains?
bool has_grain_host(const std::vector<core::HostConfig> &table);
// invalid: with this table the pool would have no host left, or none of those that are connected. `dcs host rm` removes
// them one by one.
Status keeps_a_host(const core::State &state, const std::vector<core::HostConfig> &table, const std::string &file);

// The same at a start, before anything is connected. refused: hosts have grains, and the table has no host at all. A
// table that has others, and none of these, is a warning: nothing if all is well.
Status keeps_working_hosts(const core::State &state, const std::vector<core::HostConfig> &table,
                           const std::string &file, std::string &warning);

}  // namespace dcs::shell
