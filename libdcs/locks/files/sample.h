#pragma once
// The last runs and refusals of an atom, kept in its file: the data that limits are learned from. The run
// log (run_log.h) has the same and more for people, and may be rotated away.
#include <cstdint>
#include <string>
#include <vector>

#include "locks/files/record.h"

namespace dcs::locks {

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
