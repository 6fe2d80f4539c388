#pragma once
// The options of dcs_scheduler: of its command line and of its configuration file.
#include <string>
#include <vector>

#include "daemon/options.h"
#include "scheduler/state/state.h"
#include "scheduler/turn/user_limits.h"
#include "wire/session_calls.h"

namespace dcs::shell {

struct SchedulerOptions {
    std::string directory, hosts_file, policy_file, limits_file, log_level = "info", tls, tls_users, group, masters;
    std::string mirror = "off";
    int ready_fd = -1;
    int accept_lost_turn = 0;

    std::string hosts() const { return hosts_file.empty() ? directory + "/hosts" : hosts_file; }
    std::string policy() const { return policy_file.empty() ? directory + "/policy" : policy_file; }
    std::string limits() const { return limits_file.empty() ? directory + "/limits" : limits_file; }
    std::vector<std::string> master_names() const;
};

// Options that go into the fields of `into`, which outlives it.
CommandLine command_line(SchedulerOptions &into);

// What the files say that the options name.
struct SettingsFiles {
    std::vector<core::HostConfig> hosts;
    core::Policy policy;
    turn::UserLimits limits;
};
// All of them, or what is wrong with them in `why`; a file that root must not believe (daemon/trusted_path.h) is wrong.
SettingsFiles read_settings_files(const SchedulerOptions &options, std::vector<Status> &why);

// `rows` of `dcs doctor`, and that the last reload failed for the reason `why`, if it did.
std::vector<wire::ProblemRow> with_refused(const std::string &why, std::vector<wire::ProblemRow> rows);

}  // namespace dcs::shell
