#pragma once
// What another host table does to the pool: emptied or cut off by mistake it must not end the work of all.
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "scheduler/state/state.h"
#include "wire/session_calls.h"

namespace dcs::shell {

// Has the table, read from `file`, a host that runs grains?
bool has_grain_host(const std::vector<core::HostConfig> &table);
// invalid: with this table the pool would have no host left, or none of those that are connected. `dcs host rm` removes
// them one by one. refused, unless `move_grains`: the backup would leave, or hosts that run grains, which then start
// again elsewhere.
Status keeps_hosts(const core::State &state, const std::vector<core::HostConfig> &table, const std::string &file,
                   bool move_grains);

// Hosts whose names differ in upper and lower case alone: probably one machine. Nothing: "".
std::string alike_names(const std::vector<core::HostConfig> &table);
std::optional<wire::ProblemRow> alike_names(const core::State &state);

// What becomes of the hosts that run grains: "added h3; removed h1 (2 running); changed h2". Nothing: "".
std::string changes_of_hosts(const core::State &state, const std::vector<core::HostConfig> &table);
// With what changed in the hosts, and in the lines of policy and limits, if anything did.
void log_reread(const std::string &hosts_file, const std::string &policy_file, const std::string &of_hosts,
                const std::string &of_rules);

// The same at a start, before anything is connected. refused: hosts have grains, and the table has no host at all. A
// table that lacks some of these is a warning: nothing if all is well.
Status keeps_working_hosts(const core::State &state, const std::vector<core::HostConfig> &table,
                           const std::string &file, std::string &warning);

}  // namespace dcs::shell
