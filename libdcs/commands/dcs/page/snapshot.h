#pragma once
// What the scheduler and the backup said, at one moment.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/dcs/query/scheduler.h"
#include "wire/message.h"

namespace dcs::commands::page {

struct Snapshot {
    std::int64_t at_ms = 0;  // wall clock of the last answer; 0: none yet
    double took_s = 0;       // from the first question to the last answer
    double backup_s = 0;     // of it, the time that the backup's answers took
    bool down = false;       // the scheduler of this host: it does not run
    bool reachable = false;  // false: the rows are those of the last answer
    std::string why;         // not reachable: the cause
    double up_since_s = 0;   // the scheduler's start, since 1970
    wire::SystemRow system;
    std::vector<wire::HostRow> hosts;      // in the scheduler's order
    std::vector<wire::MemberRow> members;  // hosts without a grain server
    // Active ones first, in the order in which they get hosts; then the others, those that ended last first.
    std::vector<Session> sessions;
    std::vector<wire::ProblemRow> problems;        // as `dcs doctor` lists them
    std::uint64_t store_free = 0, store_size = 0;  // bytes of the disk with the backing store, if it is on this host
    bool has_backup = false;                       // it is on this host, and may be asked
    std::optional<wire::BackupStatus> backup;
    std::optional<wire::MirrorStatus> copy;  // what the scheduler says of the backup's copy of its store
};

// That it does not run is known without asking it. False also if this user cannot know.
bool scheduler_is_down(const std::string &directory);

// `directory`: of the pool, empty if it is on another host. What cannot be had is as it was `before`.
Snapshot take_snapshot(const std::string &directory, Snapshot before);

// Until the next one: the interval that is wanted, but longer after one that took long.
double pause_after_look_s(double took_s, double interval_s);

// A host can have more grains than slots: one waits there, or its slots became fewer.
std::int32_t busy_slots(const wire::HostRow &row);

struct Totals {
    std::int64_t slots = 0, busy = 0;                                     // of active hosts
    std::int64_t finished = 0, failed = 0, given_back = 0, launched = 0;  // since the store was created
    double cpu_s = 0;
};
Totals totals_of(const std::vector<wire::HostRow> &hosts);

}  // namespace dcs::commands::page
