#pragma once
// What the passive backup knows: reports of grain servers, in the order in which each host gave them, and how far the
// scheduler has them (docs/BACKUP.md). It looks into none of them: whether a report counts is the scheduler's affair.
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/ids.h"
#include "base/instant.h"
#include "base/limits.h"

namespace dcs::backup {

// One report as it lies in its host's log.
struct Held {
    std::uint64_t number = 0;              // of its host: 1, 2, 3 ...
    GrainKey key;
    Incarnation incarnation = 0;
    std::uint32_t first_seq = 0, last_seq = 0;
    bool ended = false;
    std::uint64_t offset = 0, length = 0;  // of its record, head and all
    bool operator==(const Held &) const = default;
};

using Lease = std::pair<GrainKey, Incarnation>;
struct Newest { std::uint64_t number = 0; std::uint32_t last_seq = 0; bool ended = false; };

struct HostReports {
    // durable
    std::uint64_t last = 0;        // number of the last report that was taken
    std::uint64_t forgotten = 0;   // the scheduler has them up to here
    std::uint64_t log_length = 0;  // of the host's log; 0 whenever nothing is held
    std::deque<Held> held;         // by number, all above `forgotten`
    // volatile
    std::uint64_t sent = 0;        // up to here they are on their way to the scheduler
    // derived
    std::map<Lease, Newest> newest;  // of those held
};

enum class Link : std::uint8_t {
    down,        // until link_at
    connecting,
    greeting,    // BackupCall is out
    ready        // reports go over
};

// Whose certificates count, by host, as the scheduler said last.
using Members = std::map<std::string, TokenHash>;
// A server that has said who it is. key: of its certificate; none: a process of this host.
struct Guest {
    std::string host;
    std::optional<TokenHash> key;
};

struct Counters { std::uint64_t taken = 0, handed_over = 0, refused = 0; };

struct State {
    std::uint64_t store = 0;       // the store's name, for life
    std::uint64_t most_bytes = std::uint64_t{limits::backup_held_mb} << 20;
    Instant started{};
    std::map<std::string, HostReports> hosts;
    Members members;               // durable, in a file of its own
    // volatile
    std::map<ConnId, Guest> servers;        // who has said who it is
    Link link = Link::down;                 // to the scheduler
    Instant link_at{};                      // down: connect then; connecting, greeting: give up then
    int failures = 0;                       // connections in a row that came to nothing
    bool full = false;                      // the log says already that nothing more fits
    Counters counters;
    // derived
    std::uint64_t bytes = 0, reports = 0;   // of all logs; held
    std::uint64_t sent_bytes = 0, sent_reports = 0;
    std::set<std::string> unsent;           // hosts with reports that are not on their way

    const HostReports *host(const std::string &name) const {
        const auto it = hosts.find(name);
        return it == hosts.end() ? nullptr : &it->second;
    }
};

inline constexpr Duration first_retry = milliseconds(200);
inline constexpr Duration retry_max = seconds(5);       // the scheduler waits for what is held here
inline constexpr Duration link_patience = seconds(15);  // for a connection, and for the answer to BackupCall

// The earliest instant at which a Tick has something to do.
inline Instant next_deadline(const State &state) {
    return state.link == Link::ready ? Instant::never() : state.link_at;
}
// Empty: everything derived agrees with what it is derived from, and every log with what is held. For tests.
std::string check(const State &state);

}  // namespace dcs::backup
