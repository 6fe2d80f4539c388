#pragma once
// What a State promises to outlive a crash: its durable parts as one text, and of every grain the
// bytes, built from what was submitted and reported and never read back from the store.
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "scheduler/state/decision.h"
#include "store/store.h"

namespace dcs::test {

using Bytes = std::shared_ptr<const std::string>;

// Equal texts, equal durable parts. Hosts count by name, what is volatile is left out.
std::string durable_text(const core::State &state);

// What was said to the scheduler, acknowledged or not.
struct Reported {
    std::map<std::pair<core::RequestId, GrainNumber>, Bytes> params;  // packed specs by the id of their call
    // By lease and last increment: an older report of a lease may come again, by the backup, before what the newer one
    // brought is committed. First: the host.
    using Increment = std::tuple<std::string, GrainKey, Incarnation, std::uint32_t>;
    std::map<Increment, std::shared_ptr<const wire::GrainReport>> reports;
};

// The State after a turn.
struct Snapshot {
    struct Known {
        core::GrainStatus status = core::GrainStatus::ready;
        std::string host;
        Incarnation incarnation = 0;
        std::uint32_t sequence = 0;
        int failures = 0, attempts = 0;
        Bytes params, checkpoint, message, out, err;
    };
    std::uint64_t turn = 0;  // of the store
    std::string text;
    std::map<SessionKey, std::uint64_t> seniority, log_length;
    std::map<GrainKey, Known> grains;
};
using SnapshotPtr = std::shared_ptr<const Snapshot>;

// The Snapshot of `after`, one turn behind `before`. `wrong` gets what cannot be explained by what
// was said.
SnapshotPtr next_snapshot(const Snapshot &before, const core::State &after, const Reported &reported,
                          std::string &wrong);

// Reads every byte that `state` promises through record::read_*; "" if all are what they must be.
std::string compare_bytes(store::Store &store, const core::State &state, const Snapshot &expected);
// The trees that are there, and the lengths of their files, are those of `state`: none left behind.
std::string compare_trees(const std::map<std::string, std::string> &files, const core::State &state);

// Each session's event log, read back and gone through, tells nothing that cannot have been and ends in `state`.
std::string compare_logs(store::Store &store, const core::State &state);

}  // namespace dcs::test
