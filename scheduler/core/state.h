#pragma once
// What the scheduler knows. Entities are plain values; everything else (queues, counts, who runs
// where) is derived from them inside State, so that setting an entity back to an earlier value
// undoes all of its consequences, and a State rebuilt from disk equals the one that was lost.
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/box.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/limits.h"
#include "wire/server_calls.h"
#include "wire/user_calls.h"

namespace dcs::core {

using HostId = std::int32_t;  // index into State::hosts(); stable while the process lives
inline constexpr HostId no_host = -1;

enum class GrainStatus : std::uint8_t { ready, running, finished, killed };
enum class SessionStatus : std::uint8_t { active, terminated };
enum class HostStatus : std::uint8_t {
    unknown,     // in the table, has not called since the scheduler started
    active,
    delinquent,  // not heard of for call_in_alert
    dead         // not heard of for call_in_limit; its grains were moved
};
const char *name_of(GrainStatus s);
const char *name_of(SessionStatus s);
const char *name_of(HostStatus s);

// A session may hold a million of these: the fields stand by size, and what most grains never have
// is boxed.
struct Grain {
    // durable
    Fingerprint fingerprint{};       // of the packed spec without its label
    std::int64_t queue_position = 0; // ready: order in the session's queue, smaller first
    std::uint64_t request = 0;       // id of the d_gexec that made it (C12)
    std::uint64_t params_offset = 0; // in the session's inputs
    std::uint64_t input_length = 0, input_position = 0;  // original input; first byte a restart still needs
    std::uint64_t checkpoint_length = 0;                 // 0: none
    std::uint64_t out_length = 0, err_length = 0;        // taken in so far (own tree), or final
    std::uint64_t result_offset = 0; // settled without own tree: in the session's results lie from
                                     // here on its out, err, checkpoint, message
    std::uint32_t params_length = 0, message_length = 0;
    // CRC-32C of what lies on disk with the length above.
    std::uint32_t params_sum = 0, checkpoint_sum = 0, message_sum = 0, out_sum = 0, err_sum = 0;
    std::int32_t thrash = 0, notice = 0;
    std::uint32_t host_class = 0;    // 0: any
    Incarnation incarnation = 0;     // of the last lease
    HostId host = no_host;           // running: where; ready: whose lease may still be forgiven (S8),
                                     // else no_host; finished, killed: the last one
    std::uint32_t sequence = 0;      // last increment taken in
    std::int32_t exit_code = 0, signal = 0;
    std::int32_t result_index = -1;  // place in the session's order of finishing
    GrainStatus status = GrainStatus::ready;
    std::uint8_t attempts = limits::attempts;
    std::uint8_t failures = 0;       // non-innocent ends so far
    bool own_tree : 1 = false;       // files of its own (big parameters, or a checkpoint): see record/
    bool urgent : 1 = false;
    bool params_own_file : 1 = false;  // packed spec lies in the grain's tree, not in the session's inputs
    // volatile
    bool launched : 1 = false;       // the server confirmed the start
    std::uint8_t failures_there = 0; // and where it failed last (S6: tried there first), in a row
    HostId failed_on = no_host;
    Incarnation skipped = 0;         // numbers that no lease of it had, see Host::fence
    Instant last_contact{}, checkpoint_time{};
    // durable
    Box<wire::Usage> past, current;  // earlier incarnations; this one
    Box<std::vector<HostId>> nogo;   // must not be tried there
};

// Settled, with a tree of its own that is not worth one any more.
bool packable(const Grain &g);

struct SessionInfo {
    // durable
    SessionStatus status = SessionStatus::active;
    std::uint64_t seniority = 0;     // counter at creation: smaller is older
    std::string ident;               // of the control program that it is bound to
    TokenHash token{};               // of the control program that holds it now
    std::uint64_t open_request = 0;  // id of the call that opened it last (C12)
    bool resumable = false;          // opened by resume/reopen: d_gexec is idempotent
    std::int32_t sent = 0;           // results acknowledged
    std::int32_t shown = 0;          // results handed out at least once; these stay in the order
    std::int32_t result_count = 0;   // indices handed out to finished grains, holes of killed ones included
    std::int64_t queue_front = 0, queue_back = 0;  // positions given out so far are [queue_front, queue_back)
    std::uint64_t inputs_length = 0, results_length = 0;   // append files of the session
    // maintained by record/, core leaves them alone
    std::uint64_t grains_length = 0; // append file of the session too: the log of its grains
    std::uint64_t grains_live = 0;   // not recorded: how long that log would be if it were written now
};

struct Waiter { ConnId conn = 0; std::uint64_t request = 0; std::int32_t next = 0; };

struct Session {
    SessionInfo info;
    std::map<GrainNumber, Grain> grains;
    // derived
    // By host_class: queue_position -> grain; of active sessions and terminated ones alike.
    std::map<std::uint32_t, std::map<std::int64_t, GrainNumber>> ready;
    std::vector<GrainNumber> results;              // index -> grain, -1: hole
    std::int32_t counts[4] = {0, 0, 0, 0};         // by GrainStatus
    std::set<GrainNumber> packable;                // once the session is closed, see packable()
    // volatile
    std::vector<Waiter> waiters;                   // parked d_gwait calls
    std::map<GrainNumber, std::string> damaged;    // set aside, not among `grains`: what is wrong on disk
};

struct HostConfig {
    std::string name, binary_class;
    std::uint32_t host_class = 1;
    std::int32_t slots = 1;
    Duration interval = seconds(300), alert = seconds(900), limit = seconds(1800), extended = seconds(7200);
    std::vector<std::string> users;                // permitted; empty: everybody
    bool operator==(const HostConfig &) const = default;
};
// What became of the grains that a host was given, over all restarts of the scheduler.
struct HostTotals {
    std::uint64_t launched = 0, finished = 0, failed = 0, given_back = 0;
    std::int64_t cpu_us = 0;         // of those that ended there
    bool operator==(const HostTotals &) const = default;
};
struct HeldBack { GrainKey key; Instant until{}; };
struct Host {
    HostConfig config;
    HostTotals totals;               // durable, committed lazily
    bool configured = true;          // false: known only because grains remember it
    // all volatile
    HostStatus status = HostStatus::unknown;
    ConnId conn = 0;                 // 0: not connected
    Instant last_contact{};          // of the host, or the scheduler's start: grace
    std::string binary_class;
    double load = 0;
    std::int64_t free_memory_kb = -1; // unknown; less what was launched there since it was told
    std::vector<HeldBack> held_back;  // ended there innocently a moment ago: not again at once
    Incarnation fence = 0;           // it may still report on leases of removed grains up to this one;
                                     // grain numbers come again, so leases given to it go on above
};

struct AuthEntry {
    std::string user, ident;
    std::int64_t stamp_s = 0;        // wall clock when it was first seen without sessions; 0: has sessions
};

struct State {
    // entities
    std::map<SessionKey, Session> sessions;
    std::vector<Host> hosts;
    std::map<TokenHash, AuthEntry> auth;
    std::map<SessionKey, std::string> set_aside;  // did not verify ("file: why"); not among sessions
    std::uint64_t next_seniority = 1;  // durable with the session that used it (rebuilt as max + 1)
    std::uint64_t epoch = 1;
    // derived
    std::map<std::uint64_t, SessionKey> by_seniority;       // active sessions
    std::vector<std::set<GrainKey>> running;                // by HostId
    std::map<std::string, HostId> host_ids;
    std::map<std::uint64_t, SessionKey> waiting;            // the part of by_seniority that has ready grains
    std::set<HostId> open_hosts;                            // with a free slot: active, connected
    std::set<SessionKey> unpacked;                          // terminated, with packable grains

    const Session *session(const SessionKey &key) const;
    const Grain *grain(const GrainKey &key) const;
    const Host *host(HostId id) const;
    HostId host_id(const std::string &name) const;          // no_host if unknown
    std::int32_t free_slots(HostId id) const;               // 0 unless active and connected
};

}  // namespace dcs::core
