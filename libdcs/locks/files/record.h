#pragma once
// The record of an atom's holder and its past. Written by the holder, readable by all; trusted only where the kernel
// locks agree.
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/status.h"
#include "locks/files/lock_file.h"
#include "locks/files/world.h"
#include "process/identity.h"

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

// The last runs and refusals of an atom, kept in its file: the data that limits are learned from. The run
// log (run_log.h) has the same and more for people, and may be rotated away.

constexpr std::size_t samples_kept = 128, refusals_kept = 64;

struct Sample {                     // one run
    std::int64_t wall = 0;          // its start
    std::int64_t runtime = 0;       // by the monotonic clock; of a crashed run: until it was noticed, so only a bound
    std::int64_t cpu = 0;           // of its whole tree, nanoseconds
    std::int64_t io = 0;            // bytes read and written by its tree
    std::int64_t waited = 0;        // from the request to the grant
    std::int64_t limit = no_limit;  // expireafter in force
    Outcome outcome = Outcome::none;
    bool progressing = false;  // for an expired one: it used CPU or I/O in the last third of its life
};

struct Denial {  // one refusal
    std::int64_t wall = 0;
    bool too_soon = false;  // else busy
    uid_t uid = 0;
    pid_t pid = 0, parent = 0;
    std::string command;  // of the requester, at most 19 bytes are kept
};

// `number` is Record::samples of the writer, who holds the atom.
Status write_sample(const LockFile &file, std::uint64_t number, const Sample &sample);
// Oldest first; damaged ones are left out.
std::vector<Sample> read_samples(const LockFile &file);
// Takes the guard. A failure to note a refusal does not change the refusal.
void note_denial(const LockFile &file, const Denial &denial);
std::vector<Denial> read_denials(const LockFile &file);

}  // namespace dcs::locks
