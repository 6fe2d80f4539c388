#pragma once
// Processes from /proc: information about each, and the whole table.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/status.h"

namespace dcs {

struct ProcessStat {
    pid_t pid = 0, parent = 0, group = 0, session = 0;
    char state = '?';
    bool of_kernel = false;  // a kernel thread
    bool exiting = false;    // it does not return to user mode
    std::uint64_t minor_faults = 0, major_faults = 0;
    std::uint64_t user_ticks = 0, system_ticks = 0;  // including waited-for children
    std::uint64_t start_time = 0;                    // clock ticks since boot
    std::uint64_t threads = 0, resident_pages = 0;
};

// Parses a line of /proc/PID/stat. Allocates nothing: also called between vfork and exec.
bool parse_stat(std::string_view line, ProcessStat &stat) noexcept;
// False if there is no such process.
bool read_stat(pid_t pid, ProcessStat &stat) noexcept;
bool is_stopped(pid_t pid);  // by a signal or a debugger
// Whether the real, effective, saved and file system uid of a process are all `uid`, according to the kernel.
// `unclear`: no descriptor was left to look with. A process that has ended gives `no`.
enum class RunsAs : std::uint8_t { no, yes, unclear };
RunsAs runs_as(pid_t pid, uid_t uid);
// That uid, if all four are the same.
std::optional<uid_t> only_uid(pid_t pid);
// /proc/sys/kernel/random/boot_id without the newline; empty if unreadable.
std::string boot_id();
// The text of a file of /proc or of a control group, at most its first `max` bytes; empty on a read error.
std::string kernel_text(const std::string &path, std::size_t max);
// Its words, of at most 200 bytes, for people; empty: not visible, or a zombie.
std::string command_of(pid_t pid);
// The pids in such a file, as in `children` and `cgroup.procs`.
std::vector<pid_t> pids_in(const std::string &path);
// The numeric names in a directory of /proc: processes, threads or descriptors. Empty, with errno, if it cannot
// be read.
std::vector<int> numbers_in(const std::string &directory);
// Whether this errno means that descriptors ran out. Any other means that the process has ended.
bool out_of_descriptors(int error) noexcept;
// All processes of this host. `missed`: errno if some may be missing, for example when no descriptor was left.
std::vector<ProcessStat> all_processes(int *missed = nullptr);
// The environment from the kernel: NAME=value separated by NUL; empty if unreadable or a zombie. Amid execve(2) the
// kernel shows none for a moment: waits up to 5 ms for that of the new program.
std::string environment_of(pid_t pid);
bool has_variable(const std::string &environment, const std::string &name_and_value);

// What follows finds the processes that belong together, stops such a set from growing, and ends it: grains and holders
// of locks.

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
