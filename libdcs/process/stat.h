#pragma once
// What the kernel says of a process in /proc.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/status.h"

namespace dcs {

struct ProcessStat {
    pid_t pid = 0, parent = 0, group = 0, session = 0;
    char state = '?';
    bool of_kernel = false;  // a thread of the kernel's own
    bool exiting = false;    // it will not return to its program
    std::uint64_t minor_faults = 0, major_faults = 0;
    std::uint64_t user_ticks = 0, system_ticks = 0;  // with waited-for children
    std::uint64_t start_time = 0;                    // clock ticks since boot
    std::uint64_t threads = 0, resident_pages = 0;
};

// A line of /proc/PID/stat. Allocates nothing: also called between vfork and exec.
bool parse_stat(std::string_view line, ProcessStat &stat) noexcept;
// False if there is no such process.
bool read_stat(pid_t pid, ProcessStat &stat) noexcept;
// Under whose uid a process runs, by the kernel's word: real, effective, saved and file system uid are all `uid`.
// `unclear`: no descriptor was left to look with. One that is gone runs as nobody.
enum class RunsAs : std::uint8_t { no, yes, unclear };
RunsAs runs_as(pid_t pid, uid_t uid);
// /proc/sys/kernel/random/boot_id without the newline; empty if unreadable.
std::string boot_id();
// A file of /proc or of a control group, at most its first `max` bytes; empty if it cannot be read to there.
std::string kernel_text(const std::string &path, std::size_t max);
// The processes that such a file lists, as `children` and `cgroup.procs` do.
std::vector<pid_t> pids_in(const std::string &path);
// Names of a directory of /proc that are numbers: processes, threads or descriptors. Empty, with errno, if it cannot
// be read.
std::vector<int> numbers_in(const std::string &directory);
// Does this errno of a look at a process say that no more could be opened? Otherwise the process is gone.
bool out_of_descriptors(int error) noexcept;
// Every process of this host. `missed`: errno if some may not be among them, as when no descriptor was left.
std::vector<ProcessStat> all_processes(int *missed = nullptr);
// Environment as the kernel shows it: NAME=value with NUL between; empty if unreadable or a zombie.
// Of a process amid execve(2), which shows none for a moment, it is the new program's: waits up to 5 ms for it.
std::string environment_of(pid_t pid);
bool has_variable(const std::string &environment, const std::string &name_and_value);

}  // namespace dcs
