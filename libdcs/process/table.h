#pragma once
// Which processes belong together, and how such a set is stopped from growing and ended. What ends grains and
// what ends the holders of locks both stand on this.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "process/stat.h"

namespace dcs {

// Our children, alive or zombie, as the kernel lists them. For a subreaper that is also whatever the ended
// processes of its tree left behind.
std::vector<pid_t> own_children();

// Never pid 1, the caller or a thread of the kernel.
bool may_be_signalled(const ProcessStat &process);

// A signal to exactly this process: start time checked through a pidfd, so never to a later one of its pid.
void signal_exactly(const ProcessStat &process, int number);

// Does a process carry NAME=value in its environment? `unclear`: it shows no environment at all, because it has
// none or because it is in the middle of an exec, which on a busy host may take a while.
enum class Carries : std::uint8_t { no, yes, unclear };
Carries carries(pid_t pid, const std::string &mark);

// All living processes of the host at one moment, more or less.
class ProcessTable {
public:
    ProcessTable();
    const ProcessStat *find(pid_t pid) const;
    // Those of `start`, whoever is in session `session` (0: none), and all descendants of these, a parent always
    // before its children.
    std::vector<ProcessStat> family(const std::vector<pid_t> &start, pid_t session) const;
    const std::vector<ProcessStat> &all() const { return all_; }
    int missed() const { return missed_; }  // errno, as all_processes() has it

private:
    int missed_ = 0;
    std::vector<ProcessStat> all_;
    std::map<pid_t, std::size_t> by_pid_;
    std::multimap<pid_t, std::size_t> children_;
};

// Processes to be ended, as they are now. `unclear`: there may be others, not to be seen yet, or out of reach.
struct FoundProcesses {
    std::vector<ProcessStat> processes;
    bool unclear = false;
};
// Stops what `look` finds until it finds nothing that still runs, as a process that stands still starts no
// other; then kills all of it. Returns the last look. Bounded; call it again until nothing is found.
FoundProcesses strike(const std::function<FoundProcesses()> &look,
             const std::function<void(const ProcessStat &, int)> &signal = signal_exactly);

}  // namespace dcs
