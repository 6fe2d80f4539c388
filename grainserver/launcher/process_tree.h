#pragma once
// Which processes belong to a grain besides its first one, and how they are ended.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "locks/process_stat.h"
#include "grainserver/launcher/cgroups.h"

namespace dcs::launcher {

// Our children, alive or zombie, as the kernel lists them. We are the subreaper: whatever a grain's
// ended processes left behind shows up here.
std::vector<pid_t> own_children();

// A signal to exactly this process: start time checked through a pidfd, so never to a later one of its pid.
void signal_exactly(const locks::ProcessStat &process, int number);

// The value that every process of a grain inherits, unless it cleared its environment.
std::string cookie(const std::string &grain_directory);

// Does a process carry the cookie? `unclear`: it shows no environment at all, because it has none or
// because it is in the middle of an exec, which on a busy host may take a while.
enum class Carries : std::uint8_t { no, yes, unclear };
Carries carries(pid_t pid, const std::string &mark);

// All living processes of the host at one moment, more or less.
class ProcessTable {
public:
    ProcessTable();
    const locks::ProcessStat *find(pid_t pid) const;
    // Those of `start`, whoever is in session `session` (0: none), and all descendants of these.
    std::vector<locks::ProcessStat> family(const std::vector<pid_t> &start, pid_t session) const;
    const std::vector<locks::ProcessStat> &all() const { return all_; }

private:
    std::vector<locks::ProcessStat> all_;
    std::map<pid_t, std::size_t> by_pid_;
    std::multimap<pid_t, std::size_t> children_;
};

// Processes to be ended, as they are now. `unclear`: there may be others, which do not show it yet.
struct Found {
    std::vector<locks::ProcessStat> processes;
    bool unclear = false;
};
// Stops what `look` finds until it finds nothing that still runs, as a process that stands still starts no
// other; then kills all of it. Returns the last look. Bounded; call it again until nothing is found.
Found strike(const std::function<Found()> &look);

// A grain whose launcher is dead.
struct Orphan {
    pid_t pid = 0;                 // of its first process, at this start time; 0: not known
    std::uint64_t start_time = 0;
    std::string directory;         // of the grain
    std::string leaf;
};
Found look_for(const Orphan &orphan, const Cgroups &cgroups);
// Ends it. Waits until its processes are gone, at most `seconds`; false if some are left (in the kernel's
// uninterruptible sleep).
bool kill_orphan(const Orphan &orphan, const Cgroups &cgroups, int seconds);

// The members of a leaf.
std::vector<locks::ProcessStat> members_of(const std::string &leaf, const Cgroups &cgroups);

}  // namespace dcs::launcher
