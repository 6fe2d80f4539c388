#pragma once
// What a Query tells of the pool as a whole.
#include <cstdint>
#include <string>
#include <vector>

#include "base/limits.h"
#include "wire/archive_rules.h"

namespace dcs::wire {

struct ClassRow {
    std::string name;
    std::uint32_t mask = 0;
};  // a name for a mask of host classes
// The passive backup, and its copy of the store if it keeps one.
struct BackupRow {
    std::string name;        // in the host table; empty: a process of the scheduler's host
    std::string state;       // connected, away, not_joined
    std::string mode, copy;  // lagging, sync; copying, behind, current, away, ahead, detached. Empty: it keeps no copy
    double lag_s = 0;        // age of the oldest turn that is not in the copy
};
// How long something took, since the scheduler's start.
struct DelayRow {
    std::string what;                   // a kind of call: submit, wait, query, change, report; or commit
    std::vector<std::uint64_t> counts;  // by SystemRow::bounds_us, and last of those that took longer
    std::uint64_t sum_us = 0;
};
struct SystemRow {
    std::uint64_t epoch = 0, turn = 0;
    std::int64_t pid = 0, up_s = 0;
    std::int32_t hosts = 0, hosts_active = 0, sessions_active = 0;  // without pilots that have no job
    std::int64_t ready = 0, running = 0;
    std::string version;
    std::vector<ClassRow> classes;         // that the host table declares
    std::vector<std::uint64_t> bounds_us;  // of the rows of `delays`, ascending
    std::vector<DelayRow> delays;
    double oldest_ready_s = -1;      // for how long the grain has waited that waits longest; -1: not known
    std::vector<BackupRow> backups;  // one, or none
    std::int64_t clock_s = 0;        // the wall clock that the times of sessions are by
    std::int64_t ahead_s = 0;        // by how much it was put forward lately, or nothing was recorded
};

// clang-format off
template <class A> void serialize(A &a, ClassRow &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(name)) & DCS_FIELD(mask);
}
template <class A> void serialize(A &a, BackupRow &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(name)) & at_most(limits::name_bytes, DCS_FIELD(state))
      & at_most(limits::name_bytes, DCS_FIELD(mode)) & at_most(limits::name_bytes, DCS_FIELD(copy)) & DCS_FIELD(lag_s);
}
template <class A> void serialize(A &a, DelayRow &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(what)) & DCS_FIELD(counts) & DCS_FIELD(sum_us);
}
template <class A> void serialize(A &a, SystemRow &x, unsigned) {
    a & DCS_FIELD(epoch) & DCS_FIELD(turn) & DCS_FIELD(pid) & DCS_FIELD(up_s) & DCS_FIELD(hosts)
      & DCS_FIELD(hosts_active) & DCS_FIELD(sessions_active) & DCS_FIELD(ready) & DCS_FIELD(running)
      & DCS_FIELD(version) & shown_since<9>(DCS_FIELD(classes)) & shown_since<9>(DCS_FIELD(bounds_us))
      & shown_since<9>(DCS_FIELD(delays)) & shown_since<9>(DCS_FIELD(oldest_ready_s))
      & shown_since<9>(DCS_FIELD(backups)) & shown_since<9>(DCS_FIELD(clock_s)) & shown_since<9>(DCS_FIELD(ahead_s));
}
// clang-format on

}  // namespace dcs::wire
