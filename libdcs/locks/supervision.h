#pragma once
// How a command is to be run under locks, and what became of it.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "locks/kill_carefully.h"
#include "locks/record.h"

namespace dcs::locks {

enum class Keep : std::uint8_t {
    both,    // the supervisor has the locks and the command inherits them: kept until both are gone
    leader,  // the supervisor alone: strays of the command do not prolong the lock; the command dies with it
    tree,    // until nothing of the command's tree runs any more
    exec,    // the command takes over this very process (for service managers); a keeper beside it has the locks too
    fd,      // plain exec with the locks inherited, as flock -F, chpst and setlock do
};

struct RunEnd {
    bool started = false;      // false: the command could not be executed; `status` is 126 or 127, 125 if we failed
    int status = 0;            // for exit(): the command's own, 128 + signal, 124 when it was ended at its limit
    Outcome outcome = Outcome::none;
    Moment ended;
    std::int64_t runtime = 0, cpu = 0, io = 0;
    bool progressing = false;  // at the moment of its limit
    std::string text;          // what went wrong, for people; empty if nothing did
};

struct Supervision {
    std::vector<std::string> argv;
    Keep keep = Keep::both;
    std::vector<int> lock_fds;                  // close-on-exec here; copies go to the command as `keep` says
    std::vector<std::string> environment;       // NAME=value on top of ours
    std::int64_t soft = no_limit, hard = no_limit;  // from the start, by the monotonic clock. At `soft` a tree without
                                                // progress is ended, one that used CPU or I/O in the last third of
                                                // its life goes on to `hard`
    KillGrace grace;
    std::uint64_t cookie = 0;                   // of the run, see Owner; 0: one is drawn
    // Called when it is known who runs: right after the command was executed, for Keep::exec and fd right before.
    std::function<void(const Owner &)> started;
    // Only Keep::exec: called in the keeper when the command has ended. Its status is not known (-1) unless it was
    // ended at its limit. The lock is the keeper's to release.
    std::function<void(const RunEnd &)> ended;
};

}  // namespace dcs::locks
