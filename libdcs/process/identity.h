#pragma once
// Identifies a process beyond its pid, so that no other process is signalled. Pids are reused within milliseconds, and
// start times have a resolution of 10 ms: of 300 pids reused on purpose, all had the start tick of the previous
// process. The inode of the process in the kernel's pidfs is always different (Linux 6.9 and later); a pidfd that was
// opened before the comparison refers to the same process after it.
#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/status.h"

namespace dcs {

struct ProcessIdentity {
    pid_t pid = 0;                  // 0: no process
    std::uint64_t start_ticks = 0;  // of /proc/PID/stat
    std::uint64_t pidfs_inode = 0;  // 0: the kernel has none
    bool operator==(const ProcessIdentity &) const = default;
};

// Code::not_found: no such process, or a zombie.
Result<ProcessIdentity> identify(pid_t pid);
// A child that was not waited for and started then.
ProcessIdentity identify_child(pid_t pid, std::uint64_t start_ticks);
// The calling process; cached, and determined again after fork().
const ProcessIdentity &own_identity();

// A handle of one process, which never refers to a successor with its pid.
class ProcessHandle {
public:
    // Opens a pidfd, then compares. Code::not_found: it has ended (another process may have its pid).
    static Result<ProcessHandle> open(const ProcessIdentity &process);
    int fd() const { return fd_.get(); }  // readable when the process has ended
    // Code::refused: not permitted. Code::not_found: it has ended.
    Status signal(int number) const;
    // Whether it has ended; waits until CLOCK_BOOTTIME `until_ns` (0: does not wait).
    bool ended(std::int64_t until_ns) const;

private:
    ProcessHandle() = default;
    Fd fd_;
};

// The caller, its parent, and so on up to pid 1.
std::vector<pid_t> self_and_ancestors();

}  // namespace dcs
