#pragma once
// Who has a lock, by what the kernel shows in /proc.
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "locks/lock_file.h"

namespace dcs::locks {

// Slow. Processes with a descriptor that has an OFD lock beginning at this byte, as far as the caller may see them. A
// description has one lock and may have descriptors in many processes.
std::vector<pid_t> processes_with_lock(const LockFile &file, std::int64_t byte);

// Has this process a descriptor of the file that has an OFD lock beginning at `byte`, or for the holder's byte one by
// flock(2)? `unseen`: the kernel shows the caller no descriptors of it, or it has none, as one that is ending.
enum class Has : std::uint8_t { no, yes, unseen };
Has has_lock(pid_t pid, const LockFile &file, std::int64_t byte);

// Is the file locked by anybody now, by fcntl(2) or by flock(2)? Takes nothing, creates nothing.
bool is_held(const std::string &path);

}  // namespace dcs::locks
