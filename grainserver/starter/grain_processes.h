#pragma once
// Finds and ends the processes of a grain besides its first one.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "process/table.h"
#include "grainserver/starter/cgroups.h"

namespace dcs::starter {

// The value that every process of a grain inherits, unless it cleared its environment. Any process may put it into an
// environment, so it only distinguishes the grains of one account.
std::string cookie(const std::string &grain_directory);

// A grain whose launcher is dead.
struct Orphan {
    pid_t pid = 0;  // of its first process, at this start time; 0: not known
    std::uint64_t start_time = 0;
    std::string directory;  // of the grain
    std::string leaf;
    std::optional<uid_t> account;  // whose processes with its cookie are its own; no value: none are
};
// The account of the grain in `grain`, a directory's descriptor: its room belongs to it while it runs.
std::optional<uid_t> account_of(int grain);
FoundProcesses look_for(const Orphan &orphan, const Cgroups &cgroups);
// Ends it. Waits until its processes have ended, at most `seconds`; false if some are left (in the kernel's
// uninterruptible sleep).
bool kill_orphan(const Orphan &orphan, const Cgroups &cgroups, int seconds,
                 const std::function<void(const ProcessStat &, int)> &signal);

// The members of a leaf.
std::vector<ProcessStat> members_of(const std::string &leaf, const Cgroups &cgroups);

}  // namespace dcs::starter
