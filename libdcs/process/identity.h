#pragma once
// Which process a pid means, so that no other one is ever signalled. Pids are used again within
// milliseconds, and start times tick a hundred times a second: of 300 pids that were reused on purpose, all
// had the start tick of the process before. The inode of the process in the kernel's pidfs differs always
// (Linux 6.9 and later); a pidfd that was opened before the comparison cannot change its mind after it.
#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/status.h"

namespace dcs {

struct ProcessIdentity {
    pid_t pid = 0;                   // 0: nobody
    std::uint64_t start_ticks = 0;   // of /proc/PID/stat
    std::uint64_t pidfs_inode = 0;   // 0: the kernel has none
    bool operator==(const ProcessIdentity &) const = default;
};

// Code::not_found: no such process, or a zombie.
Result<ProcessIdentity> identify(pid_t pid);
// Of the caller; remembered, and looked up again after fork().
const ProcessIdentity &own_identity();

// A process that is certainly the one meant.
class ProcessHandle {
public:
    // Opens a pidfd and compares then. Code::not_found: it is gone (somebody else may have its pid).
    static Result<ProcessHandle> open(const ProcessIdentity &process);
    int fd() const { return fd_.get(); }  // readable when the process has ended
    // Code::refused: not permitted. Code::not_found: gone.
    Status signal(int number) const;
    // True: it has ended before CLOCK_BOOTTIME `until_ns` (0: look only).
    bool ended(std::int64_t until_ns) const;

private:
    ProcessHandle() = default;
    Fd fd_;
};

// The caller, its parent, and so on up to pid 1.
std::vector<pid_t> self_and_ancestors();

}  // namespace dcs
