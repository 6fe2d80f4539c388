#pragma once
// What the scheduler knows. Entities are plain values; everything else (queues, counts, who runs
// where) is derived from them inside State, so that setting an entity back to an earlier value
// undoes all of its consequences, and a State rebuilt from disk equals the one that was lost.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/host_classes.h"
#include "base/instant.h"
#include "base/limits.h"
#include "base/resources.h"
#include "base/status.h"
#include "scheduler/state/grain.h"
#include "scheduler/state/grain_queue.h"
#include "scheduler/state/node_pool.h"
#include "scheduler/state/result_order.h"
#include "scheduler/state/stored.h"
#include "scheduler/state/unrecorded.h"
#include "wire/server_calls.h"

namespace dcs::core {

struct SessionInfo {
    // durable
    SessionStatus status = SessionStatus::active;
    std::uint64_t seniority = 0;        // smaller goes first, see seniority_of()
    std::string ident, command, label;  // whose program holds it; what was typed and the user's word, for people
    TokenHash token{};                  // of the control program that holds it now
    RequestId open_request{};           // of the call that opened it last
    bool resumable = false;             // opened by resume/reopen: d_gexec is idempotent
    std::int32_t sent = 0;              // results acknowledged
    std::int32_t shown = 0;             // results handed out at least once; these stay in the order
    std::int32_t result_count = 0;      // indices handed out to finished grains, holes of killed ones included
    std::int64_t queue_front = 0, queue_back = 0;         // positions given out so far are [queue_front, queue_back)
    std::uint64_t inputs_length = 0, results_length = 0;  // append files of the session
    // maintained by record/, core leaves them alone
    std::uint64_t grains_length = 0;  // append file of the session too: the log of its grains
    std::uint64_t events_length = 0;  // and this one: its event log (wire/event_log.h)
    std::uint64_t grains_live = 0;    // not recorded: how long that log would be if it were written now
    std::string run;                  // nor is this: which run of the program holds it, in words
    std::int32_t decided = 0;  // nor this: how far results had been handed out when the latest grain was submitted
    // Wall clock: its first event; a grain's last end; since when it is closed. 0: not known, or not yet.
    std::int64_t opened_ms = 0, settled_ms = 0, closed_ms = 0;
};

struct Waiter {
    ConnId conn{};
    RequestId request{};
    std::int32_t next = 0;          // index of the wanted result
    std::int32_t most = 0;          // results that it takes at once, by a GrainResults; 0: one, by a GrainResult
    std::int32_t acknowledges = 0;  // results below this one count as sent when the call is over
    std::int32_t failed_from = 0;   // as in wire::Gwait
};

struct ReadyQueue {
    GrainQueue grains;                               // by queue_position
    std::map<std::uint32_t, std::int64_t> programs;  // how many are of which
    // Of all of them; 0: of several, or not known.
    std::uint32_t program() const { return programs.size() == 1 ? programs.begin()->first : 0; }
};

using Grains = std::map<GrainNumber, Grain, std::less<GrainNumber>, PooledNodes<std::pair<const GrainNumber, Grain>>>;

std::int32_t decided_in(const Grains &grains);  // as SessionInfo::decided

struct Session {
    SessionInfo info;
    Grains grains;
    // derived
    // Of active sessions and terminated ones alike.
    std::map<Shape, ReadyQueue> ready;
    ResultOrder results;
    std::int32_t counts[4] = {0, 0, 0, 0}, failed = 0;  // by GrainStatus; Grain::has_failed()
    std::uint64_t saved_us = 0;                         // processor time of its grains, see Kept; too large a sum wraps
    std::int32_t ahead = 0;                             // running ones that wait for a slot on their host
    std::int32_t with_files = 0;                        // grains that name contents, or may
    std::uint64_t own_trees = 0;                        // disk that grains with trees of their own take
    std::set<GrainNumber> packable;                     // once the session is closed, see packable()
    // volatile
    std::vector<Waiter> waiters;                 // parked d_gwait calls
    std::map<GrainNumber, std::string> damaged;  // set aside, not among `grains`: what is wrong on disk
};

struct HostConfig {
    std::string name, binary_class;
    std::uint32_t host_class = 1;
    std::int32_t slots = 1;
    Duration interval = seconds(300), alert = seconds(900), limit = seconds(1800), extended = seconds(7200);
    std::vector<std::string> users;  // permitted; empty: all
    std::int32_t cores = 0;          // 0: as many as slots
    std::int32_t memory_mb = 0;      // for grains that say what they need; 0: what it reports as free
    // Asked when it is overdue and runs grains: "name" or "name:port".
    std::vector<std::string> check, file_server, gateway;
    std::vector<std::string> accounts;      // whose grains run under their own account there
    bool source = false;                    // no grain server: control programs of `users` may call from there
    std::string backup_at;                  // no grain server: the passive backup, whose door is there
    std::int32_t time_zone_offset = 0;      // minutes that it is ahead of the scheduler's; for people
    std::uint32_t require_confinement = 0;  // Rungs without which it gets no grains
    bool pilot = false;                     // a batch job runs its server, or none does
    bool names_class = false;               // no host: `name` is a name for the mask host_class
    Offers resources;                       // named ones; they go before those that its server finds
    bool operator==(const HostConfig &) const = default;
};
// What d_sethost changed; goes before the host table.
struct HostSetting {
    std::int32_t slots = -1;  // negative, 0 for the class: as in the table
    Duration interval{-1}, alert{-1}, limit{-1}, extended{-1};
    std::uint32_t host_class = 0;
    bool drained = false;      // nothing new is started there
    std::string drain_reason;  // for display
    bool operator==(const HostSetting &) const = default;
};
HostConfig with_setting(HostConfig table, const HostSetting &setting);
// What became of the grains that a host was given, over all restarts of the scheduler.
struct HostTotals {
    std::uint64_t launched = 0, finished = 0, failed = 0, given_back = 0;
    std::int64_t cpu_us = 0;   // of those that ended there
    std::uint64_t blamed = 0;  // grains that failed there and then finished elsewhere
    bool operator==(const HostTotals &) const = default;
};
// How far the backup's reports of a host were taken in; numbers count within one store of the backup (hand_over.cc).
struct HandedOver {
    std::uint64_t store = 0, number = 0;
    bool covers(const HandedOver &other) const { return store == other.store && number >= other.number; }
    bool operator==(const HandedOver &) const = default;
};
// The passive backup's link; no ConnId: there is none.
struct BackupLink {
    ConnId conn{};
    std::uint64_t store = 0;
    Instant patience = Instant::never();  // hosts wait for it, until then
    std::string host;                     // whose certificate it showed; empty: a process of this host
    bool operator==(const BackupLink &) const = default;
};
struct ServerFirstCall;
using WaitingCall = std::shared_ptr<const ServerFirstCall>;
struct HeldBack {
    GrainKey key;
    Instant until{};
};
// A program, and whose grains it is started for: what one user may not execute another one may.
struct ProgramOf {
    std::string user;
    std::uint32_t program = 0;
    auto operator<=>(const ProgramOf &) const = default;
};
// A tentative launch: `by` is staged; when it can run, `displaced` is withdrawn for it.
struct Usurpation {
    GrainKey by, displaced;
    Incarnation incarnation = 0, displaced_lease = 0;
};
// How many grains end there in a second, and what follows from it (ahead.cc).
struct Pace {
    Instant since{};  // of the present count
    std::int64_t ended = 0;
    std::int32_t ahead = 0;  // so many grains may wait there beyond its slots
    Instant recalled{};      // when some of them were last called back
};
enum class Checked : std::uint8_t {
    no,
    asked,  // a probe is on its way
    alive   // it could be alive: it has until `extended`
};
// What the table of hosts records: what was set, and the statistics, which are committed lazily.
struct DurableHost {
    HostSetting setting;
    HostTotals totals;
    bool operator==(const DurableHost &) const = default;
};
// Of a call in a host's name.
struct Refusal {
    std::string why, address;
    bool clock = false;        // a certificate's time of validity: a clock may be wrong
    bool key_removed = false;  // from the pool: it stays refused
    Instant at{};
};
struct Host : DurableHost {
    // Both are shared: a Draft copies what else there is.
    Shared<HostConfig> config, table;  // as it counts, with what was set; as the host table has it
    bool configured = true;            // false: known only because grains remember it
    // What the scheduler knows of it now, and forgets when it ends.
    HostStatus status = HostStatus::unknown;
    ConnId conn{};                        // 0: not connected
    Instant last_contact{};               // of the host, or the scheduler's start, or the end of a pause of it: grace
    Instant last_call{};                  // since the scheduler's start; none: it has not called
    ConnId left{};                        // its link that closed last
    std::uint64_t instance = 0;           // of the server that called last
    Refusal refusal;                      // the last one since it was last connected
    Instant contested{};                  // when a second server, which still runs, was last refused
    std::string contested_from;           // its address
    Instant claimed{};                    // since another server wants its place, this one has to say that it runs
    Instant ended = Instant::never();     // since then the process behind its last link is known to have ended
    std::string binary_class, version;    // version: of its server's release; empty: not known
    std::string address;                  // from which it is connected; empty: it is not, or by a socket of this host
    wire::Form form = wire::newest_form;  // of messages, that its server reads; until it calls it may read any
    double load = 0;
    std::uint32_t confinement = 0;     // Rungs, as its server said when it connected
    Shared<Offers> found;              // resources, as its server said in its last call-in
    wire::GrainLimits limits;          // likewise; of the server before until this one calls in
    bool found_known = false;          // it has called in since its connection began
    std::string shut;                  // not empty: it takes nothing now, and why; until a call-in without it
    std::string warning;               // that it takes grains with, likewise
    std::int32_t ending = 0;           // grains that were withdrawn, whose processes have not ended, likewise
    std::int64_t free_memory_kb = -1;  // unknown; less what was launched there since it was reported
    std::int64_t total_memory_kb = 0;  // 0: unknown
    std::vector<HeldBack> held_back;   // ended there innocently a moment ago: not again at once
    std::vector<Usurpation> usurping;
    Pace pace;
    HandedOver given_up;                       // what it was waited for in vain (hand_over.cc)
    std::map<std::string, std::int64_t> uids;  // by user, of their grains there, as far as its server has told
    std::map<ProgramOf, Instant> missing;      // that could not be executed there: not tried again before
    Checked checked = Checked::no;
    Instant checked_at{};            // when the last probe was sent
    std::uint32_t probe = 0;         // number of the last probe
    std::int32_t blamed_lately = 0;  // since a grain last finished there
    Incarnation fence = 0;           // it may still report on leases of removed grains up to this one;
                                     // grain numbers come again, so leases given to it go on above
};

// It confines grains less than the host table demands.
inline bool too_open(const Host &host) { return (host.config->require_confinement & ~host.confinement) != 0; }
// As its server says, else as the host table does; may be empty.
const std::string &binary_class_of(const Host &host);

// The pool's rules beyond the paper's; off unless its file says otherwise. 0: no limit.
struct Policy {
    bool fair_share = false;  // users with fewer running grains go first, then seniority
    std::int32_t sessions_per_user = 0, grains_per_user = 0, running_per_user = 0;
    std::int32_t stored_mb_per_user = 0;  // of disk: sessions and contents
    std::int32_t stored_share = 50;       // limit of a user, in percent of the free space and the user's data
    std::int32_t probation = 0;           // so many grains blamed in a row: one grain at a time until one finishes
    std::int32_t token_age_s = static_cast<std::int32_t>(limits::token_age_s);  // that a token stays without sessions
    std::int32_t session_age_s = 0;   // that a closed session stays; 0: until it is removed by command
    std::vector<std::string> users;   // who may call; empty: all
    std::vector<std::string> denied;  // who may not, and whose grains do not start
    Amounts resources;                // named ones that all hosts share, such as licences
    bool operator==(const Policy &) const = default;
};
// Of one user's active sessions.
struct UserCounts {
    std::int64_t sessions = 0, unfinished = 0, running = 0;
    std::int64_t shapes = 0;  // of grains that wait, in all sessions together
    bool operator==(const UserCounts &) const = default;
};
struct Used {
    std::int64_t cores = 0, memory_mb = 0;
    Amounts resources;  // without zeros
    void add(const Used &other, int sign = 1);
    bool operator==(const Used &) const = default;
};
Used used_by(const wire::Demands &demands);
Amounts asked(const std::string &resources);  // of a demand, or a shape
void add_to(Amounts &sum, const Amounts &amounts, int sign = 1);

struct AuthEntry {
    std::string user, ident;
    std::int64_t stamp_s = 0;  // wall clock when it was first seen without sessions; 0: has sessions
    // Of a control program on another host: where, and the hash of the only key with which the token counts.
    std::string host;
    TokenHash key{};
    bool operator==(const AuthEntry &) const = default;
};

// How hosts come to have certificates (join_host.cc). A code is known by its hash; the consent of an operator to a
// host that has none is among them under the hash of its key.
enum class HostRole : std::uint8_t { server, client, backup };  // as in wire::CreateToken
constexpr bool good_role(std::uint8_t role) { return role <= static_cast<std::uint8_t>(HostRole::backup); }
struct JoinCode {
    std::string host, by;        // host empty: any
    std::int64_t expires_s = 0;  // wall clock
    bool used = false;
    std::optional<TokenHash> key;  // only for who has it: an approved host, or the one that used it and may repeat
    HostRole role = HostRole::server;
    bool operator==(const JoinCode &) const = default;
};
// Of a host that has joined: wall clock of that, and of the end of its certificate.
struct Member {
    std::int64_t joined_s = 0, expires_s = 0;
    bool operator==(const Member &) const = default;
};
struct Trust {
    std::map<TokenHash, JoinCode> codes;
    std::map<std::string, TokenHash> keys;     // by host: whose certificates count, by the hash of their key
    std::map<std::string, TokenHash> clients;  // the same of the hosts of control programs
    std::map<std::string, TokenHash> backups;  // likewise
    std::map<TokenHash, Member> members;       // by these keys; none of hosts that joined with release 0.1
    // Keys that no longer count, while certificates of theirs may be valid: until then (0: not known when).
    std::map<TokenHash, std::int64_t> removed;
    const std::map<std::string, TokenHash> &of(HostRole r) const { return this->*place(r); }
    std::map<std::string, TokenHash> &of(HostRole r) { return this->*place(r); }
    static constexpr std::map<std::string, TokenHash> Trust::*place(HostRole r) {
        return r == HostRole::client ? &Trust::clients : r == HostRole::backup ? &Trust::backups : &Trust::keys;
    }
    bool operator==(const Trust &) const = default;
};
// A host that asked without a code.
struct PendingHost {
    std::string host, address;
    Instant asked{};
    HostRole role = HostRole::server;
    bool operator==(const PendingHost &) const = default;
};
using PendingHosts = std::map<TokenHash, PendingHost>;  // by the hash of its key

// Hosts from which control programs may call, and who may; none named: all but root.
using Sources = std::map<std::string, std::vector<std::string>>;
// The host of the table that is the passive backup; no name: there is none, or it is a process of this host.
struct BackupHost {
    std::string name, address;
    bool operator==(const BackupHost &) const = default;
};

struct State {
    // entities
    std::map<SessionKey, Session> sessions;
    std::vector<Host> hosts;
    std::map<TokenHash, AuthEntry> auth;
    std::map<SessionKey, std::string> set_aside;  // did not verify ("file: why"); not among sessions
    std::uint64_t next_seniority = 1;  // the next age; durable with the session that used it (rebuilt as max + 1)
    std::uint64_t epoch = 1;
    Policy policy;  // volatile
    Trust trust;
    PendingHosts pending;                              // volatile
    Sources sources;                                   // volatile
    HostClasses classes;                               // volatile
    BackupHost backup_host;                            // volatile
    std::map<std::string, HandedOver> handed_over;     // by host
    std::map<std::string, std::int32_t> last_numbers;  // by user: the highest of removed sessions
    std::map<std::string, Incarnation> last_leases;    // by user: the highest of removed grains
    BackupLink backup;                                 // volatile
    std::map<std::string, WaitingCall> waiting_calls;  // volatile, by host: until the backup has handed over
    // derived
    std::map<std::uint64_t, SessionKey> by_seniority;  // active sessions
    std::vector<std::set<GrainKey>> running;           // by HostId
    std::vector<std::set<GrainKey>> ahead;             // by HostId: of these, those that wait for a slot there
    std::set<HostId> crowded;                          // hosts with some
    std::map<std::string, HostId> host_ids;
    // Active sessions with ready grains: shape -> user -> seniority.
    std::map<Shape, std::map<std::string, std::map<std::uint64_t, SessionKey>>> waiting;
    std::map<std::uint32_t, std::set<HostId>> open_hosts;  // by class; with a free slot: active, connected
    std::map<ProgramOf, std::set<HostId>> lacking;         // hosts whose `missing` has it
    std::set<std::pair<Instant, HostId>> lapses;           // when something that is held against a host is over
    std::set<std::pair<Instant, GrainKey>> resting;        // ready grains that rest, by when they have rested
    std::set<GrainKey> circling;                           // unfinished grains that people should hear of
    std::set<std::pair<Instant, HostId>> deadlines;        // when lose_hosts has something to do about it
    std::map<ConnId, HostId> host_of_conn;
    std::map<ConnId, std::set<SessionKey>> waiting_conns;  // who has parked calls
    std::map<std::string, UserCounts> users;
    std::vector<Used> used;                        // by HostId: what its grains asked for
    Amounts used_of_pool;                          // named resources, on all hosts together
    std::map<std::string, std::int64_t> contents;  // by how many grains each is named
    std::set<SessionKey> unpacked;                 // terminated, with packable grains
    std::map<std::string, std::int64_t> parked;    // calls that wait, by user
    Stored stored;                                 // with facts of the disk
    Unrecorded unrecorded;                         // a fact of the disk, too
    const Session *session(const SessionKey &key) const;
    const Grain *grain(const GrainKey &key) const;
    const Host *host(HostId id) const;
    HostId host_id(const std::string &name) const;  // no_host if unknown
    HostId host_of(ConnId conn) const;              // whose server has this link; no_host if none
    std::string host_name(HostId id) const;         // empty if unknown
    bool takes_grains(HostId id) const;             // active, connected, not drained, shut or too open
    std::int32_t free_slots(HostId id) const;       // 0 unless it takes grains
};

// The next instant at which silence of this host has a consequence, and at which a mark on it (held_back, missing) is
// over; never() if there is none.
Instant deadline_of(const Host &host), lapse_of(const Host &host);
// It came back from hosts so often that `dcs doctor` names it.
bool circles(const Grain &g);

// The highest number of this user's removed sessions; -1: there is none.
std::int32_t last_number_of(const State &state, const std::string &user);
// Leases of grains of this session have higher numbers: up to this one they may have been of grains that were removed,
// on which a host or the backup may still report, whenever that is.
Incarnation lease_floor(const State &state, const SessionKey &key);

// What is said of what is not there: session_unknown; or io_error when it exists but is set aside as damaged.
Status missing_session(const State &state, const SessionKey &key);
// grain_unknown; or io_error when it exists but is set aside as damaged.
Status missing_grain(const State &state, const GrainKey &key);

}  // namespace dcs::core
