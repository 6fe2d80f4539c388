#pragma once
// Changes of a whole turn -> updates of update trees, one per tree.
//
// A grain without a tree of its own lives in its session's log `grains`: each turn that changes it
// appends its record, the last one counts. A grain with a tree of its own lives in that tree's
// `status`; the log only says once that there is one, so that a lost tree is noticed. When the
// log has grown beyond twice its live records + 64 KiB it is rewritten.
//
// The session's tree commits lazily (paper, 4.2): a turn in which grains with trees of their own only
// changed what their session's event log does not tell does not touch it. Rebuilding takes the newer
// status files into account.
//
// How it is used, once per turn:
//   for each change:  changes.add(state, change); core::apply(state, change, undo);
//   for each changes.turn_checkpoints(state): core::apply(state, it, undo);
//   Plan plan = changes.plan(state, with_hosts, wall_ms);
//   for each plan.lengths: core::apply(state, it, undo);     (grains_length, events_length, grains_live)
//   commit plan.updates
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/state/decision.h"
#include "store/store.h"
#include "wire/event_log.h"

namespace dcs::record {

struct Plan {
    std::vector<store::TreeUpdate> updates;
    std::vector<core::SetSession> lengths;  // sessions with another grains_length or events_length now
};

class TurnChanges {
public:
    // `before`: the State that `change` is about to be applied to.
    void add(const core::State &before, const core::Change &change);
    // Statistics of hosts changed. They wait for a turn that commits anyway, and are in its plan if
    // it is made `with_hosts`.
    bool hosts() const { return hosts_; }
    // A setting of a host changed: the plan must be made `with_hosts`.
    bool host_settings() const { return settings_; }
    // Nothing of it has to be on disk before effects may leave.
    bool empty() const { return sessions_.empty() && !auth_ && !settings_ && !trust_ && !handed_over_; }
    // Of grains that replace a checkpoint: their next one goes into the other file. To be applied before plan().
    std::vector<core::SetGrain> turn_checkpoints(const core::State &after) const;
    // What was gathered goes into the plan; nothing may be added afterwards. `wall_ms`: of the events.
    Plan plan(const core::State &after, bool with_hosts, std::int64_t wall_ms);

private:
    // An append of this turn: `bytes` behind the first `old_length` bytes of the file.
    struct Append {
        bool used = false;
        std::uint64_t old_length = 0;
        std::string bytes;
        void add(std::uint64_t at, const core::Payload &payload);
        std::uint64_t end() const { return old_length + bytes.size(); }
    };
    struct Files {
        std::map<std::string, core::Payload> replaced;  // by name
        Append out, err;
    };
    struct GrainChanges {
        bool own_tree = false;  // in the end
        bool became_own_tree = false;
        bool left_own_tree = false;
        bool seen = false;
        std::uint64_t checkpoint_before = 0;  // its length before this turn, in its own tree
        std::uint32_t live_before = 0;        // length of its record before this turn
        std::unique_ptr<Files> files;         // of its own tree
    };
    struct SessionChanges {
        bool erased = false;   // what follows is a new session of the same name
        bool status = false;   // its own fields changed
        bool settled = false;  // a grain of it ended
        bool renewed = false;  // it got all its grains at once, or lost some: the log is written as a whole
        std::map<GrainNumber, GrainChanges> grains;
        std::vector<GrainNumber> gone;  // erased grains with trees of their own
        Append inputs, results;
        core::Payload old_events;  // of an import: what the event log begins with
        wire::EventFrame events;
    };

    void write(const core::WriteFile &file);
    void add_grain(const core::State &before, const core::SetGrain &change);
    void erase_grain(const core::State &before, const GrainKey &key);
    static void plan_own_trees(const core::State &after, const SessionKey &key, SessionChanges &changes, Plan &plan);
    static void plan_session(const core::State &after, const SessionKey &key, SessionChanges &changes,
                             std::int64_t wall_ms, Plan &plan);
    static std::string plan_log(const core::State &after, const SessionKey &key, const SessionChanges &changes,
                                core::SessionInfo &info);
    static void plan_grain(const core::State &after, const GrainKey &key, const core::Grain &grain, Files &files,
                           Plan &plan);

    std::map<SessionKey, SessionChanges> sessions_;
    bool auth_ = false, trust_ = false, handed_over_ = false;
    bool hosts_ = false, settings_ = false;
};

}  // namespace dcs::record
