#pragma once
// Finds the holders of a lock in /proc.
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "locks/files/lock_file.h"
#include "locks/files/record.h"

namespace dcs::locks {

// The processes with a descriptor that has an OFD lock beginning at this byte, as far as the caller may see them. Slow.
// An open file description has one lock, and may have descriptors in many processes.
std::vector<pid_t> processes_with_lock(const LockFile &file, std::int64_t byte);

// What the kernel tells of a process, for a record or of a holder that has none.
Owner owner_by_kernel(const World &world, const ProcessIdentity &process);
std::vector<Owner> owners_of_lock(const World &world, const LockFile &file, std::int64_t byte);

// Whether this process has a descriptor of the file with an OFD lock that begins at `byte`, or for the holder's byte
// a flock(2) lock. `unseen`: its descriptors are not visible to the caller, or it has none, as while it exits.
enum class Has : std::uint8_t { no, yes, unseen };
Has has_lock(pid_t pid, const LockFile &file, std::int64_t byte);

// Whether any process has the file locked by fcntl(2) or flock(2). Takes no lock, creates no file.
bool is_held(const std::string &path);

}  // namespace dcs::locks
