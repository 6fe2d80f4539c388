#pragma once
// How a command is run under locks, and the result.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "locks/kill_carefully.h"
#include "locks/files/record.h"

namespace dcs::locks {

enum class Keep : std::uint8_t {
    both,    // the supervisor has the locks and the command inherits them: kept until both are gone
    leader,  // the supervisor alone: stray processes do not prolong the lock; the command dies with the supervisor
    tree,    // until no process of the command's tree runs any more
    exec,    // the command replaces this process (for service managers); a keeper process has the locks too
    fd,      // plain exec with the locks inherited, as in flock -F, chpst and setlock
};

struct RunEnd {
    bool started = false;  // false: the command could not be executed; `status` is 126 or 127; 125: an error of DCS
    int status = 0;        // exit status: the command's own, 128 + signal, 124 when it was ended at its limit
    Outcome outcome = Outcome::none;
    Moment ended;
    std::int64_t runtime = 0, cpu = 0, io = 0;
    bool progressing = false;  // at its limit
    std::string text;          // the error, for people; empty if there was none
};

struct Supervision {
    std::vector<std::string> argv;
    Keep keep = Keep::both;
    std::vector<int> lock_fds;                      // close-on-exec here; the command gets copies as `keep` states
    std::vector<std::string> environment;           // NAME=value, added to the caller's
    std::int64_t soft = no_limit, hard = no_limit;  // from the start, by the monotonic clock. At `soft` a tree without
                                                    // progress is ended, one that used CPU or I/O in the last third of
                                                    // its life goes on to `hard`
    KillGrace grace;
    std::uint64_t cookie = 0;  // of the run, see Owner; 0: a new one is generated
    // Called with the owner: right after the command was executed, for Keep::exec and fd right before.
    std::function<void(const Owner &)> started;
    // Only Keep::exec: called in the keeper when the command has ended. Its status is not known (-1) unless it was
    // ended at its limit. The keeper releases the lock.
    std::function<void(const RunEnd &)> ended;
};

// Runs in which the command replaces the calling process. With Keep::exec a separate process, the keeper, keeps the
// lock whatever the command closes, enforces the limit, and records the end.

// The owner that describes process `pid`.
Owner owner_of(const World &world, const Supervision &what, pid_t pid, std::uint64_t cookie);

// Returns only if the command could not be executed; no keeper is left then.
RunEnd become(const World &world, const Supervision &what, std::uint64_t cookie);

// Runs a command under locks that the caller holds, keeps the locks as `what.keep` states, ends the command's whole
// tree at its limit, and reports the result. Implements `dcs_lock NAME CMD`.
//
// Passes INT, TERM, HUP, QUIT, USR1 and USR2 on to the command; expire_request ends it as its limit would. These
// signals stay blocked on return, so that the caller can record the end. Returns only when no process that was to be
// ended runs any more; with Keep::exec and Keep::fd only on failure. The caller has no other threads.
RunEnd supervise(const World &world, const Supervision &what);

}  // namespace dcs::locks
