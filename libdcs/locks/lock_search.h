#pragma once
// Who has a lock, by what the kernel shows of open files. Slow: looks through /proc.
#include <vector>

#include <sys/types.h>

#include "locks/lock_file.h"

namespace dcs::locks {

// Processes with a descriptor that has an OFD lock beginning at this byte, as far as the caller may see them. A
// description has one lock and may have descriptors in many processes.
std::vector<pid_t> processes_with_lock(const LockFile &file, std::int64_t byte);

}  // namespace dcs::locks
