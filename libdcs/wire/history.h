#pragma once
// A session as its event log tells it, event by event. Who draws the computation, undoes a part of it, or checks
// that the log is right, starts from here. Logs may come from any user (imports): whatever the events say, each costs a
// bounded number of steps (the logarithm of the grains aside) and at most 512 bytes, beside its own strings.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "wire/event_log.h"

namespace dcs::wire {

// Where a grain ran once, without a break.
struct Stay {
    std::string host;
    std::uint32_t incarnation = 0;
    std::int64_t from_ms = 0, to_ms = -1;  // -1: it still runs there
    std::vector<std::int64_t> checkpoints_ms;
    std::string reason;  // why it left; "finished", "killed"; empty: it runs
};
// Before it left for this reason. A grain that was sent to a host ahead of its slots may leave without having run;
// without a reason it was called back.
bool has_run(const std::string &reason);

enum class GrainState : std::uint8_t { ready, running, finished, killed, unknown };
struct GrainHistory {
    GrainState state = GrainState::ready;
    std::int64_t order = 0;  // of its submission, among all
    std::int64_t submitted_ms = 0, ended_ms = -1;
    std::uint32_t known = 0;           // places in the order of finishing that were handed out when it was submitted
    std::vector<std::int32_t> peeked;  // unfinished grains of which something was shown since the submission before
    std::uint32_t killed_after = 0;    // killed: so many had been handed out then
    std::int32_t result = -1, code = 0, signal = 0;
    std::uint32_t sequence = 0;  // of the last checkpoint
    std::vector<Stay> stays;
};

class History {
public:
    // In the order of the log. Returns what cannot be true after the events before; "": nothing. The event counts
    // in any case.
    std::string take(const Event &event);

    bool whole = false;  // the log begins with the session's opening
    bool active = false;
    std::uint32_t handed_out = 0;
    std::int32_t forgotten = 0;  // submissions that `--and-after` took back
    std::int64_t from_ms = 0, to_ms = 0;
    std::string ident;
    std::map<std::int32_t, GrainHistory> grains;
    struct Mark {  // what the control program did
        EventKind kind = EventKind::opened;
        std::int64_t at_ms = 0;
        std::uint32_t number = 0;
    };
    std::vector<Mark> marks;  // openings, closings, hand-outs
    // The order of finishing: place -> grain, -1: none (any more). After an import a place counts only if there were as
    // many events before it.
    std::vector<std::int32_t> results;

private:
    std::string take_session(const Event &event);
    std::string take_grain(const Event &event, GrainHistory &grain);
    void end_stay(GrainHistory &grain, const Event &event, const std::string &reason);
    std::string finish(GrainHistory &grain, const Event &event);
    void undo(GrainHistory &grain);

    std::int64_t submissions_ = 0;
    bool imported_ = false;  // grains may exist without an event in the log
    void forget_states(const Event &imported);
    std::uint64_t taken_ = 0;            // events
    std::vector<std::int32_t> peeked_;   // since the last submission
    std::set<std::int32_t> peeked_set_;  // the same
    std::set<std::int32_t> known_;       // grains whose state is not `unknown`
};

}  // namespace dcs::wire
