#pragma once
// What a decision consists of: changes (made by apply, made durable by record and store), effects
// (done by the turn only after the commit), follow-ups (decided next), events (for log and people).
#include <string>
#include <variant>
#include <vector>

#include "scheduler/state/input.h"
#include "wire/message.h"

namespace dcs::core {

// ---- changes ------------------------------------------------------------------------------
// clang-format off
struct SetAuth { TokenHash hash; AuthEntry entry; };
struct EraseAuth { TokenHash hash; };
struct SetSession { SessionKey key; SessionInfo info; };
struct EraseSession { SessionKey key; };          // with all its grains and files
struct EraseDamaged { SessionKey key; };          // one that was set aside, with all its files
struct EraseGrain { GrainKey key; };              // with its files
struct AddGrains { SessionKey key; std::shared_ptr<const GrainList> grains; };  // to a session without any
// volatile_only: only volatile fields and the usage of the running incarnation differ from what is
// recorded; needs no commit, and the next durable SetGrain carries it.
struct SetGrain { GrainKey key; Grain grain; bool volatile_only = false; };
// id == hosts.size() adds one. Volatile, but for totals (lazily) and what was set (`durable`).
struct SetHost { HostId id; Host host; bool durable = false; };
struct SetPolicy { Policy policy; };              // volatile
struct SetTrust { Trust trust; };
struct SetPending { PendingHosts pending; };      // volatile
struct SetSources { Sources sources; };           // volatile
struct SetClasses { HostClasses classes; };       // volatile
struct SetBackupHost { BackupHost host; };        // volatile
struct SetWaiters { SessionKey key; std::vector<Waiter> waiters; };  // volatile
struct SetLastNumber { std::string user; std::int32_t number = 0; Incarnation lease = 0; };
struct SetHandedOver { std::string host; HandedOver up_to; };
struct SetBackup { BackupLink link; };            // volatile
struct SetWaitingCall { std::string host; WaitingCall call; };  // volatile; none: it no longer waits
// Bytes for the store, besides the entities. Appends carry the recorded old length.
enum class File : std::uint8_t {
    session_inputs,   // append: packed specs of small grains
    session_results,  // append: out, err, checkpoint, message of settled grains without own trees
    session_events,   // the event log that an import brings; what follows in it is made of the changes themselves
    grain_params,     // replace (once): big packed spec
    grain_checkpoint, // replace
    grain_message,    // replace
    grain_out,        // append
    grain_err         // append
};
struct WriteFile { GrainKey key; File file; std::uint64_t old_length = 0; Payload bytes; };
using ChangeOf = std::variant<SetAuth, EraseAuth, SetSession, EraseSession, EraseDamaged, AddGrains, EraseGrain,
                            SetGrain, SetHost, SetWaiters, WriteFile, SetPolicy, SetTrust, SetPending, SetSources,
                            SetHandedOver, SetBackup, SetWaitingCall, SetBackupHost, SetClasses,
                            SetLastNumber>;
// Its special members are in variants.cc, as those of AnyMessage are in message.cc.
class Change : public ChangeOf {
public:
    using ChangeOf::ChangeOf;
    Change();
    Change(const Change &);
    Change(Change &&) noexcept;
    Change &operator=(const Change &);
    Change &operator=(Change &&) noexcept;
    ~Change();
};
// Needs a commit before effects may leave? (SetPolicy, SetPending, SetSources, SetWaiters, SetBackup, SetWaitingCall,
// SetBackupHost, SetClasses, most SetHosts and a volatile_only SetGrain do not.)
bool durable(const Change &change);

// ---- effects ------------------------------------------------------------------------------
struct Reply { ConnId conn; RequestId request; wire::AnyMessage message; };
// The turn adds out and err.
struct ReplyResult { ConnId conn; RequestId request; GrainKey key; wire::GrainResult head; };
struct ReplyResults {
    ConnId conn;
    RequestId request;
    SessionKey session;
    std::vector<wire::GrainResult> heads;
};
struct ReplyPiece { ConnId conn; RequestId request; GrainKey key; wire::Fetch fetch; };
// The turn asks the grain's host for what it has not reported; from `recorded` on, behind increment `after`.
struct ReplyLive {
    ConnId conn;
    RequestId request;
    GrainKey key;
    wire::Fetch fetch;
    ConnId server;
    Incarnation incarnation;
    std::uint32_t after;
    std::uint64_t recorded;
};
// grain_differs, with the fields named.
struct ReplyDifference { ConnId conn; RequestId request; GrainKey key; Payload now; };
// The turn adds argv and message. The first row is that of `key`; others of its session are left out if they fail.
struct ReplyGrainDetail { ConnId conn; RequestId request; GrainKey key; std::vector<wire::GrainRow> rows; };
// The turn adds the grains after `after`.
struct ReplyExport { ConnId conn; RequestId request; SessionKey key; GrainNumber after; std::int32_t most; };
// The turn adds what it knows of disk and recovery.
struct ReplyDoctor { ConnId conn; RequestId request; std::vector<wire::ProblemRow> problems; };
struct SendServer { ConnId conn; wire::AnyMessage message; };
// The turn adds argv, env, directory and input.
struct SendLaunch { ConnId conn; GrainKey key; wire::Launch head; };
struct CloseConnection { ConnId conn; };
// The shell reads its settings again, or says why it cannot; the turn replies.
struct Reread { ConnId conn; RequestId request; std::string user; bool move_grains = false; };
struct SetOwnLogLevel { std::string level; };
// Answered by a ProbeResult.
struct ProbeHost { HostId host; std::uint32_t probe; std::vector<std::string> check, file_server, gateway; };
// The shell issues a certificate and sends it.
struct SendCertificate {
    ConnId conn;
    RequestId request;
    std::string host, public_key;
    HostRole role = HostRole::server;
};
// The same for a control program of another host; with its token if it has just begun.
struct SendProgram {
    ConnId conn;
    RequestId request;
    std::string user, host, ident, public_key, token;
};
// All connections of that host's dcs_begin, and of control programs there.
struct ClosePrograms { std::string host; };
// The shell takes the host's line out of the host table and reads that again; the turn replies.
struct RemoveHostLine { ConnId conn; RequestId request; std::string host; };
using EffectOf = std::variant<Reply, ReplyResult, ReplyPiece, ReplyDifference, ReplyGrainDetail, SendServer,
                            SendLaunch, CloseConnection, ReplyExport, ReplyDoctor, ProbeHost, Reread, SetOwnLogLevel,
                            ReplyResults, SendCertificate, RemoveHostLine, SendProgram, ClosePrograms, ReplyLive>;
class Effect : public EffectOf {
public:
    using EffectOf::EffectOf;
    Effect();
    Effect(const Effect &);
    Effect(Effect &&) noexcept;
    Effect &operator=(const Effect &);
    Effect &operator=(Effect &&) noexcept;
    ~Effect();
};

// clang-format on
struct Decision {
    std::vector<Change> changes;
    std::vector<Effect> effects;
    std::vector<Input> follow_ups;
    std::vector<std::string> events;  // one line each, for the log
    std::size_t looked_at = 0;        // grains that were looked through, where that depends on how many there are
};

// An event that goes into the log whatever its level is: who gave which order, who was let in.
inline bool is_audit(const std::string &event) { return event.starts_with("audit: "); }

// Pure: same state, time and input, same decision. Cannot change anything.
Decision decide(const State &state, Instant now, const Input &input);

// The only writer of State. Keeps before-images in `undo`; rolling an Undo back restores State
// exactly (entities and everything derived). A WriteFile changes nothing in memory.
class Undo {
public:
    Undo();
    ~Undo();
    Undo(Undo &&) noexcept;
    Undo &operator=(Undo &&) noexcept;
    struct Steps;
    std::unique_ptr<Steps> steps;
};
void apply(State &state, const Change &change, Undo &undo);
void roll_back(State &state, Undo &undo);

// Grains that are over and have nothing but their records: what they add up to.
struct Settled {
    std::int32_t counts[4] = {0, 0, 0, 0}, failed = 0;
    std::uint64_t saved_us = 0;
    bool take(const Grain &g);  // false: it is not such a grain
    void add(const Settled &more);
};
// The grains of a session that is read.
struct Sifted {
    Settled settled;
    std::vector<Grains::const_iterator> others;
};
// A whole session that was read from disk; the hosts that its grains name are in the State. `damaged`: grains that
// were not, and why. `results`: by place, -1: a hole.
struct LoadedSession {
    SessionInfo info;
    Grains grains;
    std::map<GrainNumber, std::string> damaged;
    std::vector<GrainNumber> results;
};
void load_session(State &state, const SessionKey &key, LoadedSession session, const Sifted &sifted = {});

// A host whose reports the backup has is believed when they are here, or when the backup was silent for so long. A
// server waits 15 s for the answer to its first call (grainserver/core/state.h).
inline constexpr Duration backup_patience = seconds(5);

// The earliest instant at which a Tick has something to decide; Instant::never() if none.
Instant next_deadline(const State &state);

// Every cross reference and every derived thing, recomputed. Empty: all is well. Otherwise what is
// wrong, in words. Tests and the simulator call it after every apply.
std::string check(const State &state);
// The same of a State that was just loaded, without a second look at settled grains.
std::string check(const State &state, const std::map<SessionKey, Sifted> &grains);
// What contradicts itself in the record of a grain of this session; null: nothing.
const char *wrong_record(const SessionInfo &info, const Grain &g);

}  // namespace dcs::core
