#pragma once
// Finds the processes that belong together, stops such a set from growing, and ends it. Used to end grains and holders
// of locks.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "process/stat.h"

namespace dcs {

// The caller's children, alive or zombie, from the kernel. For a subreaper they include the orphans of its tree.
std::vector<pid_t> own_children();

// False for pid 1, the caller and kernel threads.
bool may_be_signalled(const ProcessStat &process);

// Signals exactly this process: checks the start time through a pidfd, so no successor with its pid is signalled.
// `allowed` is asked about the process that the pidfd refers to.
void signal_exactly(const ProcessStat &process, int number, const std::function<bool()> &allowed = {});

// Whether a process has NAME=value in its environment. `unclear`: the environment is not visible, because it is empty
// or because the process is in an exec, which may take a while on a busy host.
enum class Carries : std::uint8_t { no, yes, unclear };
Carries carries(pid_t pid, const std::string &mark);

// All living processes of the host; the scan is not atomic.
class ProcessTable {
public:
    ProcessTable();
    const ProcessStat *find(pid_t pid) const;
    // The processes in `start`, the members of session `session` (0: none), and all their descendants, a parent always
    // before its children.
    std::vector<ProcessStat> family(const std::vector<pid_t> &start, pid_t session) const;
    const std::vector<ProcessStat> &all() const { return all_; }
    int missed() const { return missed_; }  // errno, as in all_processes()

private:
    int missed_ = 0;
    std::vector<ProcessStat> all_;
    std::map<pid_t, std::size_t> by_pid_;
    std::multimap<pid_t, std::size_t> children_;
};

// Processes to be ended. `unclear`: there may be others, not visible yet or out of reach.
struct FoundProcesses {
    std::vector<ProcessStat> processes;
    bool unclear = false;
};
// Stops the processes that `look` finds until it finds none that still runs, because a stopped process starts no
// others; then kills them all. Returns the last look. Bounded; call it again until nothing is found.
FoundProcesses strike(const std::function<FoundProcesses()> &look,
                      const std::function<void(const ProcessStat &, int)> &signal);

}  // namespace dcs
