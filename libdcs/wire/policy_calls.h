#pragma once
// What people ask and order about placement: why a grain does not run, what a host may do, run again.
#include <cstdint>
#include <string>
#include <vector>

#include "wire/user_calls.h"

namespace dcs::wire {

// Why the grain is where it is. Of the owner, or of one with privilege.
struct Explain { std::string user; std::int32_t session = 0, grain = 0; };  // -> Explanation
struct WhyRow {
    std::string reason;              // a word, such as other_class; docs/SCHEDULING.md lists them
    std::string text, hint;          // a sentence each; what it is, what to do about it (may be empty)
    std::int32_t hosts = 0;          // how many hosts this holds for; 0: it is about the grain itself
    std::vector<std::string> names;  // of the first of them
};
struct Explanation {
    std::string state;               // ready running finished killed
    std::string summary;             // one sentence
    bool can_run = true;             // false: no configured host could ever run it
    std::int32_t ahead = -1;         // ready: grains that come before it in its own session's queues
    std::vector<WhyRow> reasons;
};

// For scheduler_master and root. What is negative, 0 (class) or empty stays as it is; what is set
// outlives restarts and goes before the host table, until `reset`.
struct SetHost {                                 // -> Done
    std::string host;
    std::int32_t slots = -1;         // 0 evicts its grains at once, with a checkpoint where possible
    double interval_s = -1, alert_s = -1, limit_s = -1, extended_s = -1;
    std::uint32_t host_class = 0;
    std::int32_t drained = -1;       // 1: nothing new is started there, what runs ends by itself; 0: no longer
    bool reset = false;              // as the host table has it
    // Clears the host's place in nogo sets: of one grain (session and grain not negative), or of all.
    bool clear_nogo = false;
    std::string user; std::int32_t session = -1, grain = -1;
};

// A ready or running grain begins anew from its last checkpoint, wherever it may: its failures, its
// nogo set and what holds it back are forgotten. Of the owner, or of one with privilege.
// and_after, of a finished or killed one: its result is forgotten and with it all that was decided after it was handed
// out (docs/RESTARTABLE_PROGRAMS.md). `forgets`: so many submissions, as the caller was told; -1: it alone.
struct RestartGrain {                            // -> Done
    std::string user; std::int32_t session = 0, grain = 0;
    bool and_after = false;
    std::int32_t forgets = 0;
};

// For scheduler_master and root. Reads the host table and the policy again, whole or not at all.
struct Reload {};                                // -> Done
// Of the scheduler, or of one host's grain server; until its next start.
struct SetLogLevel { std::string host, level; };  // -> Done; host empty: the scheduler
constexpr const char *log_levels[] = {"off", "error", "warn", "info", "debug"};

// clang-format off
template <class A> void serialize(A &, Reload &, unsigned) {}
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
      & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(session) & DCS_FIELD(grain);
}
template <class A> void serialize(A &a, RestartGrain &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(session) & DCS_FIELD(grain) & DCS_FIELD(and_after)
      & DCS_FIELD(forgets);
}
// clang-format on

}  // namespace dcs::wire
