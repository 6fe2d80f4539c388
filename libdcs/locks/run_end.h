#pragma once
// Enters the end of a run into record, samples and run log, and describes owners. The caller holds the atom.
#include <cstdint>
#include <string>

#include "locks/files/lock_file.h"
#include "locks/files/record.h"

namespace dcs::locks {

struct RunEnding {
    Outcome outcome = Outcome::done;
    Moment noticed;  // when it ended, or when its end was noticed
    std::int64_t cpu = -1, io = -1, waited = -1;
    bool progressing = false;
    std::string text;  // for the run log
};

// Ends the run that `record` states to be running. Sets `record` and writes the sample and the log line; the caller
// writes the record. A crashed run is stamped with its start, the last time at which it is known to have lived:
// a job that died early is due again at its next turn, and a job that dies at once is not repeated without pause.
void end_run(const World &world, const LockFile &file, const Place &place, bool log, Record &record,
             const RunEnding &ending);

// A line of the run log about `owner` (of a run, or of a refused request).
void log_event(const Place &place, std::int64_t wall, const char *event, const Owner &owner, std::uint64_t generation,
               std::int64_t limit, const std::string &text);

// The calling process. Its group and session only if it leads the session: a shell makes a group of each
// pipeline, and its first member leads processes that do not belong to the run.
Owner own_owner(const World &world);
// "process 4711 (sort) of uid 1000 on host dax": the holder as messages name it.
std::string described(const Owner &owner, const World &world);
std::string in_words(std::int64_t nanoseconds);  // "1.5 s", "2 h 5 min", "for ever" for no_limit

constexpr std::int64_t kill_window = 3600LL * 1'000'000'000;  // in which LockRequest::max_kills are allowed

}  // namespace dcs::locks
