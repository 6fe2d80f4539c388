#pragma once
// The options of dcs_scheduler: of its command line and of its configuration file.
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "daemon/options.h"
#include "scheduler/keeper/keeper.h"
#include "scheduler/shell/named_logins.h"
#include "scheduler/state/state.h"
#include "scheduler/turn/user_limits.h"
#include "wire/session_calls.h"

namespace dcs::shell {

struct SettingsPaths {
    std::string hosts, policy, limits;
};

struct SchedulerOptions {
    std::string directory, hosts_file, policy_file, limits_file, log_level = "info", tls, tls_users, group, masters;
    std::string mirror = "off";
    int ready_fd = -1;
    int accept_lost_turn = 0;

    SettingsPaths settings() const {
        return {hosts_file.empty() ? directory + "/hosts" : hosts_file,
                policy_file.empty() ? directory + "/policy" : policy_file,
                limits_file.empty() ? directory + "/limits" : limits_file};
    }
    std::vector<std::string> master_names() const;
    // No user from another host, whose login is not known here.
    bool users_are_known_here() const { return tls.empty() || group != "none"; }
};

// Options that go into the fields of `into`, which outlives it.
CommandLine command_line(SchedulerOptions &into);

// What the files say that the options name.
struct SettingsFiles {
    std::vector<core::HostConfig> hosts;
    core::Policy policy;
    turn::UserLimits limits;
    std::vector<NamedLogin> logins;  // in hosts and policy
    std::set<std::string> rules;     // the lines of policy and limits
};
using ReadSettings = std::function<Result<std::string>(keeper::Settings, const std::string &file, const char *what)>;
// All of them, or what is wrong with them in `why`. A missing policy is the default one, and so are missing limits.
SettingsFiles read_settings_files(const SettingsPaths &paths, const ReadSettings &read, std::vector<Status> &why);
// Read by this process.
SettingsFiles read_settings_files(const SettingsPaths &paths, std::vector<Status> &why);

// All logins that the files and the option --master name.
std::vector<NamedLogin> with_masters(std::vector<NamedLogin> logins, const std::vector<std::string> &masters);
// For `dcs doctor`.
std::vector<wire::ProblemRow> login_problems(const std::vector<NamedLogin> &unknown);
// `rows` of `dcs doctor`, and that the last reload failed for the reason `why`, if it did.
std::vector<wire::ProblemRow> with_refused(const std::string &why, std::vector<wire::ProblemRow> rows);

}  // namespace dcs::shell
