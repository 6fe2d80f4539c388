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
    std::string warning;                         // for people, may be empty
    std::optional<locks::SessionClaims> claims;  // that this process works for the session, while it lives
    std::optional<Failure> failure;
};

// What gives grains other demands than they were submitted with.
struct NewDemands {
    std::function<bool(const wire::GrainRow &)> differ;
    std::function<std::optional<Failure>(int session, const std::vector<int> &grains)> submit;
};
// Before a closed session is reopened: a grain that waits in it would start with the demands that it had.
std::optional<Failure> renew_waiting(const Session &session, const NewDemands &demands);

// Takes --session, --new, --replay and --resume-failed of the call.
OpenedMap open_map(const Call &call, const WholeMap &map, const NewDemands &demands);

// "session 7 ran WHAT, so all run": the last one before this that the same words began, with an ident of this prefix;
// empty: there is none.
std::string before_with_same_words(const std::vector<Session> &own, int session, const std::string &prefix,
                                   const std::string &what);

// Of a session: those that failed or were killed; they run again.
std::optional<Failure> failed_grains(const Session &session, std::vector<int> &grains);
std::optional<Failure> restart_failed(const Session &session, const std::vector<int> &grains);

}  // namespace dcs::commands
