#pragma once
// Which processes belong to a grain besides its first one, and how they are ended.
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "process/table.h"
#include "grainserver/launcher/cgroups.h"

namespace dcs::launcher {

// The value that every process of a grain inherits, unless it cleared its environment. Anybody may write it into an
// environment, so it tells only the grains of one account from each other.
std::string cookie(const std::string &grain_directory);

// A grain whose launcher is dead.
struct Orphan {
    pid_t pid = 0;                 // of its first process, at this start time; 0: not known
    std::uint64_t start_time = 0;
    std::string directory;         // of the grain
    std::string leaf;
    std::optional<uid_t> account;  // whose processes are its own by their cookie; not known: nobody's
};
// Of the grain in `grain`, a directory's descriptor: the room belongs to it as long as it runs.
std::optional<uid_t> account_of(int grain);
FoundProcesses look_for(const Orphan &orphan, const Cgroups &cgroups);
// Ends it. Waits until its processes are gone, at most `seconds`; false if some are left (in the kernel's
// uninterruptible sleep).
bool kill_orphan(const Orphan &orphan, const Cgroups &cgroups, int seconds);

// The members of a leaf.
std::vector<ProcessStat> members_of(const std::string &leaf, const Cgroups &cgroups);

}  // namespace dcs::launcher
