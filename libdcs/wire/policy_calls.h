#pragma once
// Queries and commands about placement: why a grain does not run, settings of a host, run a grain again.
#include <cstdint>
#include <string>
#include <vector>

#include "wire/user_calls.h"

namespace dcs::wire {

// Asks why the grain is where it is. From its user, a master or root.
struct Explain {
    std::string user;
    std::int32_t session = 0, grain = 0;
};  // -> Explanation
struct WhyRow {
    std::string reason;              // a word, such as other_class; docs/SCHEDULING.md lists them
    std::string text, hint;          // a sentence each: the cause, and what to do about it (may be empty)
    std::int32_t hosts = 0;          // number of hosts that this holds for; 0: it concerns the grain itself
    std::vector<std::string> names;  // of the first of them
};
struct Explanation {
    std::string state;        // ready running finished killed
    std::string summary;      // one sentence
    bool can_run = true;      // false: no configured host could ever run it
    std::int32_t ahead = -1;  // ready: grains that come before it in its own session's queues
    std::vector<WhyRow> reasons;
};

// For scheduler_master and root. Fields that are negative, 0 (class) or empty leave the setting unchanged; a
// setting outlives restarts and overrides the host table, until `reset`.
struct SetHost {  // -> Done
    std::string host;
    std::int32_t slots = -1;  // 0 evicts its grains at once, with a checkpoint where possible
    double interval_s = -1, alert_s = -1, limit_s = -1, extended_s = -1;
    std::uint32_t host_class = 0;
    std::int32_t drained = -1;  // 1: no grain is started there, running ones end by themselves; 0: undrains it
    bool reset = false;         // to the host table's values
    // Clears the host's place in nogo sets: of one grain (session and grain not negative), or of all.
    bool clear_nogo = false;
    std::string user;
    std::int32_t session = -1, grain = -1;
    std::string drain_reason;  // with drained 1; for display
};

// Restarts a ready or running grain from its last checkpoint: its failures, its nogo set and its rest
// are cleared. From its user, a master or root.
// and_after, for a finished or killed grain: discards its result and every decision that followed its delivery
// (RESTARTABLE_PROGRAMS.md). `forgets`: so many decisions, as the caller knows.
struct RestartGrain {  // -> Done
    std::string user;
    std::int32_t session = 0, grain = 0;
    bool and_after = false;
    std::int32_t forgets = 0;
    bool erases = false;  // the grain as well: its control program submits it again, perhaps otherwise
};

// For scheduler_master and root. Rereads the host table and the policy: both take effect or neither.
struct Reload {
    bool move_grains = false;  // also when hosts that run grains leave the pool; else that is refused
};                             // -> Done
// Of the scheduler, or of one host's grain server; until its next start.
struct SetLogLevel {
    std::string host, level;
};  // -> Done; host empty: the scheduler
constexpr const char *log_levels[] = {"off", "error", "warn", "info", "debug"};

// clang-format off
template <class A> void serialize(A &a, Reload &x, unsigned) { a & shown_since<9>(DCS_FIELD(move_grains)); }
template <class A> void serialize(A &a, SetLogLevel &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(host)) & at_most(limits::name_bytes, DCS_FIELD(level));
}
template <class A> void serialize(A &a, Explain &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(session) & DCS_FIELD(grain);
}
template <class A> void serialize(A &a, WhyRow &x, unsigned) {
    a & DCS_FIELD(reason) & DCS_FIELD(text) & DCS_FIELD(hint) & DCS_FIELD(hosts) & DCS_FIELD(names);
}
template <class A> void serialize(A &a, Explanation &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(state)) & DCS_FIELD(summary) & DCS_FIELD(can_run) & DCS_FIELD(ahead)
      & DCS_FIELD(reasons);
}
template <class A> void serialize(A &a, SetHost &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(host)) & DCS_FIELD(slots) & DCS_FIELD(interval_s) & DCS_FIELD(alert_s)
      & DCS_FIELD(limit_s)
      & DCS_FIELD(extended_s) & DCS_FIELD(host_class) & DCS_FIELD(drained) & DCS_FIELD(reset) & DCS_FIELD(clear_nogo)
      & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(session) & DCS_FIELD(grain)
      & at_most(limits::label_bytes, shown_since<9>(DCS_FIELD(drain_reason)));
}
template <class A> void serialize(A &a, RestartGrain &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(session) & DCS_FIELD(grain) & DCS_FIELD(and_after)
      & DCS_FIELD(forgets) & shown_since<9>(DCS_FIELD(erases));
}
// clang-format on

}  // namespace dcs::wire
