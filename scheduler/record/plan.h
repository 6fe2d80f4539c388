#pragma once
// Changes of a whole turn -> updates of update trees, one per tree.
//
// A grain without a tree of its own lives in its session's log `grains`: each turn that changes it
// appends its record, the last one counts. A grain with a tree of its own lives in that tree's
// `status`; the log only says once that there is one, so that a lost tree is noticed. When the
// log has grown beyond twice its live records + 64 KiB it is written anew.
//
// How it is used, once per turn:
//   for each change:  changes.add(state, change); core::apply(state, change, undo);
//   Plan plan = changes.plan(state, log_sizes);
//   for each plan.lengths: core::apply(state, it, undo);     (grains_length is kept here)
//   commit plan.updates
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/core/decision.h"
#include "store/store.h"

namespace dcs::record {

struct Plan {
    std::vector<store::TreeUpdate> updates;
    std::vector<core::SetSession> lengths;  // sessions whose grains_length is another one now
};

// When to look again whether a session's log is worth writing anew. Only a hint: forgetting it,
// or keeping what a failed turn put there, costs one more look.
using LogSizes = std::map<SessionKey, std::uint64_t>;

class TurnChanges {
public:
    // `before`: the State that `change` is about to be applied to.
    void add(const core::State &before, const core::Change &change);
    // Nothing of it has to be on disk before effects may leave.
    bool empty() const { return sessions_.empty() && !auth_; }
    std::uint64_t payload_bytes() const { return payload_bytes_; }
    Plan plan(const core::State &after, LogSizes &sizes) const;

private:
    // An append of this turn: `bytes` behind the first `old_length` bytes of the file.
    struct Append {
        bool used = false;
        std::uint64_t old_length = 0;
        std::string bytes;
        void add(std::uint64_t at, const core::Payload &payload);
    };
    struct GrainChanges {
        bool became_own_tree = false;
        std::map<std::string, core::Payload> replaced;  // by file
        Append out, err;
    };
    struct SessionChanges {
        bool erased = false;  // what follows is a new session of the same name
        bool filled = false;  // it got all its grains at once: the log is written as a whole
        std::map<GrainNumber, GrainChanges> grains;
        Append inputs, results;
    };

    void write(const core::WriteFile &file);
    static void plan_session(const core::State &after, const SessionKey &key,
                             const SessionChanges &changes, LogSizes &sizes, Plan &plan);
    static void plan_grain(const core::State &after, const GrainKey &key,
                           const core::Grain &grain, const GrainChanges &changes, Plan &plan);

    std::map<SessionKey, SessionChanges> sessions_;
    bool auth_ = false;
    std::uint64_t payload_bytes_ = 0;
};

}  // namespace dcs::record
