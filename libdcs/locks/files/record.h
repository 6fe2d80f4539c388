#pragma once
// The record of an atom's holder and its past. Written by the holder, readable by all; trusted only where the kernel
// locks agree.
#include <cstdint>
#include <string>

#include <sys/types.h>

#include "base/status.h"
#include "locks/files/lock_file.h"
#include "process/identity.h"
#include "locks/files/world.h"

namespace dcs::locks {

// The owner of an atom. `process` does the work and is ended at expiry; `supervisor` watches it (pid 0: none).
struct Owner {
    ProcessIdentity process, supervisor;
    pid_t group = 0, session = 0;  // of `process`; 0: shared with other processes, never signalled as a whole
    uid_t uid = 0;
    BootId boot{};
    std::uint64_t pid_namespace = 0;
    std::uint64_t cookie = 0;  // DCS_LOCK_ID=<16 hex digits> in the environment of its tree; 0: none
    std::string host;          // at most 48 bytes are kept
    std::string cgroup;        // path of a cgroup of its own; empty: none. At most 120 bytes, or none
    std::string command;       // for people, at most 48 bytes
};

enum class Outcome : std::uint8_t {
    none,
    running,
    done,
    failed,   // failed: the command's status was not 0
    expired,  // ended at its limit, by its supervisor or by the next requester
    crashed,  // its holder died without releasing the lock
    lost,     // its record was damaged
};
const char *outcome_name(Outcome outcome);

constexpr std::int64_t no_limit = INT64_MAX;  // "never"

struct Record {
    std::uint64_t sequence = 0;       // of the copy that was read or written last; odd ones are in place B
    std::uint64_t generation = 0;     // fencing token: increases with every grant, never repeats
    Outcome outcome = Outcome::none;  // `running` while held; else of the last run
    Owner owner;                      // of this run, or of the last
    Moment started, ended;            // of this run; of the last run that ended
    BootId started_boot{}, ended_boot{};
    Moment last_start;  // of the last run that ended, for elapsed times since the start
    std::int64_t if_elapsed = 0, expire_after = no_limit;  // in force for this run, nanoseconds
    std::uint32_t expired_in_row = 0;                      // runs that expired since the last success
    std::int64_t expired_since_wall = 0;                   // of the first of them
    std::uint64_t grants = 0, expiries = 0, crashes = 0;   // since the file was made
    std::uint64_t samples = 0;                             // number of samples ever written: the position in the ring
    std::uint32_t burst_factor = 1;                        // learned factor of ifelapsed for repeated refusals
};

// The valid copy with the higher sequence. `damaged` (may be null): neither is valid, but the place is not empty.
Record read_record(const LockFile &file, bool *damaged);
// Overwrites the older copy, as record.sequence + 1. The caller holds the atom and has read the record since.
// Code::no_space, Code::io_error.
Status write_record(const LockFile &file, Record &record);

}  // namespace dcs::locks
