#pragma once
// The backup's decisions, in the structure of the scheduler's: decide() is pure, apply() the only function that changes
// the State, and effects are performed after the commit of the changes.
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "backupd/core/state.h"
#include "wire/message.h"

namespace dcs::backup {

// ---- inputs -------------------------------------------------------------------------------
// clang-format off
struct ServerCame { ConnId conn{}; Guest guest; };
// packed: its record in the log, including the head (record/).
struct ReportCame {
    ConnId conn{};
    std::shared_ptr<const wire::GrainReport> report;
    std::shared_ptr<const std::string> packed;
};
struct ConnectionClosed { ConnId conn{}; };
struct Asked { ConnId conn{}; std::uint64_t request = 0; };  // a query of the backup's status
struct LinkOpened {};
struct LinkClosed { std::string why; };
struct SchedulerKnows {};                                      // BackupKnown
struct MembersTold { std::shared_ptr<const Members> members; };
struct Taken { std::string host; std::uint64_t number = 0; };
struct Tick {};
struct GoOn {};                                                // follow-up: hand over reports within the window
using Input = std::variant<ServerCame, ReportCame, ConnectionClosed, Asked, LinkOpened, LinkClosed, SchedulerKnows,
                           Taken, Tick, GoOn, MembersTold>;

// ---- changes ------------------------------------------------------------------------------
struct Hold { std::string host; Held report; std::shared_ptr<const std::string> packed; };  // durable
struct Forget { std::string host; std::uint64_t number = 0; };                              // durable; up to `number`
struct SetServer { ConnId conn{}; Guest guest; };                                         // no host: disconnected
struct SetMembers { std::shared_ptr<const Members> members; };
struct SetLink { Link link = Link::down; Instant at{}; int failures = 0; };  // not ready: nothing is in transfer
struct SetSent { std::string host; std::uint64_t number = 0; };
struct SetCounters { Counters counters; bool full = false; };
using Change = std::variant<Hold, Forget, SetServer, SetLink, SetSent, SetCounters, SetMembers>;
inline bool durable(const Change &change) {
    return std::holds_alternative<Hold>(change) || std::holds_alternative<Forget>(change);
}

// ---- effects ------------------------------------------------------------------------------
struct Reply { ConnId conn{}; std::uint64_t request = 0; wire::AnyMessage message; };
struct CloseConnection { ConnId conn{}; };
struct Connect {};                                   // answered by LinkOpened or LinkClosed
struct Disconnect {};                                // not answered
struct ToScheduler { wire::AnyMessage message; };
struct HandOver { std::string host; Held report; };  // the turn reads it from the store
struct SaveMembers {};
using Effect = std::variant<Reply, CloseConnection, Connect, Disconnect, ToScheduler, HandOver, SaveMembers>;

// clang-format on
struct Decision {
    std::vector<Change> changes;
    std::vector<Effect> effects;
    std::vector<Input> follow_ups;
    std::vector<std::string> events;  // for the log
};

// may_hold: false after a failed commit: every report is refused. `jitter` is a fresh random number in [0, 1).
struct Moment {
    Instant now{};
    double jitter = 0;
    bool may_hold = true;
};
Decision decide(const State &state, const Moment &moment, const Input &input);

// The data needed to revert changes.
class Undo {
public:
    struct Step {
        Change change;
        std::deque<Held> forgotten;
        std::uint64_t number = 0, log_length = 0;
        Guest guest;
        Members members;
        SetLink link;
        std::map<std::string, std::uint64_t> sent;
        SetCounters counters;
    };
    std::vector<Step> steps;
};
void apply(State &state, const Change &change, Undo &undo);
void roll_back(State &state, Undo &undo);

// Adds the reports of a host that were read from disk.
void load_host(State &state, const std::string &host, HostReports reports);

}  // namespace dcs::backup
