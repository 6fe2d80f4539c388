#pragma once
// Which session a `dcs map` works in: a new one, or one of an earlier run of the same map.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/frame/call.h"
#include "locks/files/session_claims.h"
#include "earlier.h"

namespace dcs::commands {

// How an earlier run ended, as its session's row tells it.
enum class RunEnd {
    interrupted,  // active; or grains wait, or results were not all handed out: it never wrote all of its output
    complete,     // closed after all output was written
};
RunEnd end_of_run(const Session &session);

// A detached or interrupted run ends without a command that takes its results.
bool all_ended_some_failed(const Session &session);

struct OpenedMap {
    int session = 0;
    std::int64_t done_before = 0;
    bool fresh = false;                          // nothing of an earlier run is in it
    std::vector<EarlierResult> earlier;          // of inputs that it leaves out
    std::string how;                             // for people, behind "session N: "
    std::string environment;                     // for people, how it differs; may be empty
    std::string warning;                         // the same of files
    std::string files;                           // fingerprint of what they are
    std::optional<locks::SessionClaims> claims;  // that this process works for the session, while it lives
    std::optional<Failure> failure;
};

// What grains are submitted with now.
struct GrainsNow {
    std::function<std::optional<Failure>(int session, const std::vector<int> &grains)> submit;
    std::function<const std::vector<std::string> &(int grain)> environment;
};
// Those that failed or were killed begin again, with the demands and the environment of now; so does, before a closed
// session is reopened, what waits in it. Nothing was decided on a result of a map or a job file. `from_start`: also
// those that could go on from a checkpoint, as what they read has changed.
std::optional<Failure> submit_again(const Session &session, std::vector<int> failed, const GrainsNow &now,
                                    bool from_start);
// For people: with which other variables this grain was submitted, and what of that; empty: none.
std::string other_environment(const Session &session, int grain, const GrainsNow &now, const std::string &then);
extern const std::string what_runs_takes_it;

// Through a door one at a time, so that those that begin at the same time find each other's sessions: leave() it.
// Nothing: the user has no place for locks.
std::optional<locks::SessionClaims> claims_at_door(const std::string &directory);

// Takes --session, --new, --replay and --resume-failed of the call.
OpenedMap open_map(const Call &call, const WholeMap &map, const GrainsNow &now);

// "session 7 ran WHAT, so all run", of the one that a session here points to.
std::string ran_before(const Session &session, const std::string &what);

// " since 07:12:03", of a process, with the day if that is another one; empty if unknown.
std::string since_text(pid_t pid);

// Of a session: those that failed or were killed. `from`: for people, where they begin when they run again.
std::optional<Failure> failed_grains(const Session &session, std::vector<int> &grains, std::string &from);

}  // namespace dcs::commands
