#pragma once
// The state of the passive backup: reports of grain servers, in the order of their arrival from each host, and the
// number up to which the scheduler has them (docs/BACKUP.md); and what is decided on it. The content of reports is the
// scheduler's affair.
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/instant.h"
#include "base/limits.h"
#include "wire/message.h"

namespace dcs::backup {

// A report in its host's log.
struct Held {
    std::uint64_t number = 0;  // in its host's order: 1, 2, 3 ...
    GrainKey key;
    Incarnation incarnation = 0;
    std::uint32_t first_seq = 0, last_seq = 0;
    bool ended = false;
    std::uint64_t offset = 0, length = 0;  // of its record, including the head
    bool operator==(const Held &) const = default;
};

using Lease = std::pair<GrainKey, Incarnation>;
struct Newest {
    std::uint64_t number = 0;
    std::uint32_t last_seq = 0;
    bool ended = false;
};

struct HostReports {
    // durable
    std::uint64_t last = 0;        // number of the last report that was accepted
    std::uint64_t forgotten = 0;   // the scheduler has all up to this number
    std::uint64_t log_length = 0;  // of the host's log; 0 whenever nothing is held
    std::deque<Held> held;         // by number, all above `forgotten`
    // volatile
    std::uint64_t sent = 0;  // all up to this number are sent to the scheduler
    // derived
    std::map<Lease, Newest> newest;  // of the held reports
};

enum class Link : std::uint8_t {
    down,  // until link_at
    connecting,
    greeting,  // BackupCall is sent
    ready      // reports are handed over
};

// The accepted certificates, by host, as last stated by the scheduler.
using Members = std::map<std::string, TokenHash>;
// An identified grain server. key: of its certificate; none: a process of this host.
struct Guest {
    std::string host;
    std::optional<TokenHash> key;
};

struct Counters {
    std::uint64_t taken = 0, handed_over = 0, refused = 0;
};

struct State {
    std::uint64_t store = 0;  // the store's permanent name
    std::uint64_t most_bytes = std::uint64_t{limits::backup_held_mb} << 20;
    Instant started{};
    std::map<std::string, HostReports> hosts;
    Members members;  // durable, in a separate file
    // volatile
    std::map<ConnId, Guest> servers;  // identified servers
    Link link = Link::down;           // to the scheduler
    Instant link_at{};                // down: time to connect; connecting, greeting: time to give up
    int failures = 0;                 // failed connections in a row
    bool full = false;                // it is logged that the limit is reached
    Counters counters;
    // derived
    std::uint64_t bytes = 0, reports = 0;  // sum of all logs; number of held reports
    std::uint64_t sent_bytes = 0, sent_reports = 0;
    std::set<std::string> unsent;  // hosts with reports that are not sent

    const HostReports *host(const std::string &name) const {
        const auto it = hosts.find(name);
        return it == hosts.end() ? nullptr : &it->second;
    }
};

inline constexpr Duration first_retry = milliseconds(200);
inline constexpr Duration retry_max = seconds(5);       // short, because the scheduler needs the held reports
inline constexpr Duration link_patience = seconds(15);  // for a connection, and for the answer to BackupCall

// The earliest instant at which a Tick has an effect.
inline Instant next_deadline(const State &state) {
    return state.link == Link::ready ? Instant::never() : state.link_at;
}
// For tests. Empty: all derived data is consistent with its source, and every log with the held reports.
std::string check(const State &state);

// The backup's decisions, in the structure of the scheduler's: decide() is pure, apply() the only function that changes
// the State, and effects are performed after the commit of the changes.

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
