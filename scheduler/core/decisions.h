#pragma once
// One function per input; decide.cc only dispatches. Below them what several of them share.

#include "scheduler/core/authorise.h"
#include "scheduler/state/draft.h"
#include "scheduler/state/state.h"
#include "wire/checks.h"

namespace dcs::core {

// Parameters, and the results of a grain without a tree of its own, share their session's append
// files up to this length; larger ones get files of their own.
inline constexpr std::uint64_t shared_bytes = 32 * 1024;

// ---- control programs ---------------------------------------------------------------------
void get_auth(Draft &d, const Caller &caller, const GetAuth &call);
void begin_control(Draft &d, const BeginControl &in);
void renew_program(Draft &d, const Caller &caller, const RenewProgram &call);
void open_session(Draft &d, const Caller &caller, const wire::OpenSession &call);
Status bad_session_number(std::int32_t number);
void close_session(Draft &d, const Caller &caller, const wire::CloseSession &call);
void clean_session(Draft &d, const Caller &caller, const wire::CleanSession &call);
void submit_grain(Draft &d, const Caller &caller, const SubmitGrain &call);
void submit_grains(Draft &d, const Caller &caller, const SubmitGrains &call);
void kill_grain(Draft &d, const Caller &caller, const wire::Gkill &call);
void wait_grain(Draft &d, const Caller &caller, const wire::Gwait &call);
void wait_grains(Draft &d, const Caller &caller, const wire::GwaitMany &call);
// The control program of an active session sees something that a grain has before it finished: what it submits from
// now on may follow from it, so this goes into the event log, once for each increment.
void note_shown(Draft &d, const Caller &caller, const GrainKey &key);
void fetch_stream(Draft &d, const Caller &caller, const wire::Fetch &call);
void set_session(Draft &d, const Caller &caller, const wire::SetSession &call);
void query(Draft &d, const Caller &caller, const wire::Query &call);
void export_session(Draft &d, const Caller &caller, const wire::ExportPage &call);
void import_session(Draft &d, const Caller &caller, const ImportSession &call);
// Whatever its content is: may such a session be made? Asked before the content is read.
Status may_import(const State &state, const Caller &caller, const ImportSession &call);
void doctor(Draft &d, const Caller &caller, const wire::Doctor &call);
void explain(Draft &d, const Caller &caller, const wire::Explain &call);
void set_host(Draft &d, const Caller &caller, const wire::SetHost &call);
void restart_grain(Draft &d, const Caller &caller, const wire::RestartGrain &call);
void reload(Draft &d, const Caller &caller, const wire::Reload &call);
void set_log_level(Draft &d, const Caller &caller, const wire::SetLogLevel &call);

// ---- hosts that join the pool (join_codes.cc, join_host.cc) --------------------------------
void create_code(Draft &d, const Caller &caller, const CreateCode &call);
void list_codes(Draft &d, const Caller &caller, const ListCodes &call);
// From now on `key` is refused, whatever name it joins under.
void remove_key(Trust &trust, const TokenHash &key);
void revoke_code(Draft &d, const Caller &caller, const wire::RevokeToken &call);
void approve_host(Draft &d, const Caller &caller, const ApproveHost &call);
void remove_host(Draft &d, const Caller &caller, const wire::RemoveHost &call);
void join_host(Draft &d, const JoinCall &in);
void certificate_renewed(Draft &d, const CertificateRenewed &in);
// Hosts of the table without a grain server.
std::vector<wire::MemberRow> member_rows(const State &state);
// Wall clock, of the certificate of a host that runs grains; 0: it has none, or that is not known.
std::int64_t certificate_end(const State &state, const std::string &host);
// In the host table with that role? And the error for a host that is not (not_found).
bool in_table(const State &state, HostRole role, const std::string &name);
// Also one that lasts longer than any may: it was made while the clock was ahead.
bool has_expired(const JoinCode &code, std::int64_t wall_s);
std::string lowered(std::string name);  // DNS does not tell cases apart
Status not_in_table(const State &state, HostRole role, const std::string &name);
// What programs on that host have as tokens counts no more, and their connections end.
void end_programs(Draft &d, const std::string &host);
// What a host that is too open lacks, for people.
std::string too_open_text(const Host &host);
std::string id_of_code(const TokenHash &hash);  // how people name it; tells nothing about the code

// ---- grain servers ------------------------------------------------------------------------
inline constexpr const char *server_refused = "grain server refused: host ";  // begins the event; it tries again
void first_call(Draft &d, const ServerFirstCall &in);
void call_in(Draft &d, const ServerCallIn &in);
void take_report(Draft &d, const ServerReport &in);
// Lease and sequence number decide. late: the backup held it in the meantime, and the host may have been given up.
void judge_report(Draft &d, const ServerReport &in, bool late);
void launch_result(Draft &d, const ServerLaunchResult &in);

// ---- the passive backup (hand_over.cc; backup_patience is in decision.h) -------------------
void backup_came(Draft &d, const BackupCame &in);
void hand_over(Draft &d, const ReportHandedOver &in);
void backup_closed(Draft &d, ConnId conn);
// True: the backup still has reports of that host, so its first call waits.
bool waits_for_backup(Draft &d, HostId id, const ServerFirstCall &in);
// Its host (backup_host.cc): what servers learn about it, and it about them.
wire::BackupPlace backup_place(const State &state);
wire::MemberKeys member_keys(const State &state);
void take_backup_host(Draft &d, const BackupHost &host);  // of the table
void end_backup(Draft &d, const std::string &host);       // its certificate no longer counts
void tell_of_backup(Draft &d, const TellOfBackup &in);
// Follow-ups for those that have waited in vain.
void wait_no_longer(Draft &d);

// Anything that came over a host's present connection shows that it is alive.
void hear_from(Draft &d, HostId id);
// The configuration that a server gets.
wire::Configure configuration(const State &state, const HostConfig &config);

// ---- the rest of the world ----------------------------------------------------------------
void connection_closed(Draft &d, const ConnectionClosed &in);
void server_ended(Draft &d, const ServerEnded &in);
void lose_hosts(Draft &d);  // Tick
void take_host_table(Draft &d, const HostTable &in);
void take_policy(Draft &d, const PolicyTable &in);
void probe_result(Draft &d, const ProbeResult &in);
void server_refused_at_door(Draft &d, const ServerRefused &in);
// The host is no longer in the table: its link ends, its grains go elsewhere. for_good: its server ends them.
void leave_table(Draft &d, HostId id, bool for_good);
// What follows when the configuration of a known host becomes `config` (its effective one): grains
// are evicted, the server is informed, free slots are filled.
void configure_host(Draft &d, HostId id, const HostConfig &config);
// Why grains leave a host without slots.
inline constexpr char out_of_service[] = "the host was taken out of service";

void pack_grains(Draft &d, const PackGrains &in);
// By the policy's session_age. What is damaged may yet be restored and stays.
bool is_old(const State &state, const Session &session, std::int64_t wall_ms);
void remove_old(Draft &d, const RemoveOld &in);
// For `dcs doctor`: the sessions that were old at `wall_ms` and are removed after `wait`.
std::optional<wire::ProblemRow> held_back(const State &state, std::int64_t wall_ms, Duration wait);

// ---- follow-ups ---------------------------------------------------------------------------
void fill_host(Draft &d, const FillHost &in);
void usurp(Draft &d, const Usurp &in);
void place_grain(Draft &d, const PlaceGrain &in);
void answer_waiters(Draft &d, const AnswerWaiters &in);

// ---- what goes with a removed session (close_session.cc) ----------------------------------
// The numbers of these grains may be given to others. What is under way from a connected host is
// still about these; a host that is away says at its first call what it holds. What the backup has
// from one may come much later: later grains of these keys have leases above these.
void raise_fences(Draft &d, const SessionKey &key, const Session &session);

// ---- what one user may have (policy.cc); who may call at all is in authorise.h ---------------
bool is_denied(const State &state, const std::string &user);  // by the policy
// One more active session, so many more unfinished grains.
Status check_session_quota(const State &state, const std::string &user);
Status check_grain_quota(const State &state, const std::string &user, std::int64_t more = 1);
inline bool in_replay(const SessionInfo &info) { return info.status == SessionStatus::terminated; }

// "slots=0 drained": what was set, as people write it (set_host.cc).
std::string to_text(const HostSetting &setting);

// ---- placement (placement.h, place_grain.cc, why_none.cc) ----------------------------------
// Leases the grain to the host; the effect leaves after the commit. tentative: see usurp.cc.
void launch(Draft &d, const GrainKey &key, HostId id, bool tentative);
// Why no configured host could ever run what is ready in the session. Empty if one could. `looked_at` grows by the
// grains that were looked through.
std::string why_none_can_run(const State &state, const SessionKey &key, std::size_t *looked_at = nullptr);

// ---- usurpation (usurp.cc) ----------------------------------------------------------------
// Those of the host that are still under way.
std::vector<Usurpation> usurpations(const State &state, HostId id);
// The server has staged the grain: what it displaces is withdrawn.
void staged(Draft &d, const GrainKey &key, HostId id);
bool is_displaced(const State &state, const GrainKey &key, HostId id);

// ---- back to the queue (fail_grain.cc) ----------------------------------------------------
// A grain that ran goes to the front of its queue. keep_lease: if its host returns before it is
// started elsewhere, it goes on there; otherwise nothing more is accepted of that lease.
void requeue_front(Draft &d, const GrainKey &key, bool keep_lease);
std::string shortened(const std::string &text, std::size_t most);  // with "..." in its middle
// Notes why a grain leaves the host where it is leased.
void note_move(Draft &d, const GrainKey &key, MoveReason reason, const std::string &detail = "");
// The same for all grains of a host, in their order; asks for a new place for each.
void requeue_all(Draft &d, HostId id, MoveReason reason, bool keep_lease = true);
// For half an interval the host does not get this grain again.
void hold_back(Draft &d, HostId id, const GrainKey &key);
// It broke a limit of this host's server (host_limit.cc). True: it waits for a host that permits more.
bool try_higher_limit(Draft &d, const GrainKey &key, HostId id, const wire::GrainReport &report);
// An abnormal end with attempts left.
void fail_grain(Draft &d, const GrainKey &key, HostId id);

// ---- repeated returns (give_back.cc), and failed starts (nogo.cc) ----------------------------
// The code of a grain that could not be brought to its end, as of a command that could not do its work.
inline constexpr int exit_given_up = 125;
// Once more by its own doing, and it has failed.
bool last_return(const Grain &grain);
// It ran and came back by its own doing: to its queue, where it rests if it did so before.
void come_back(Draft &d, const GrainKey &key, HostId id);
// The same for a start that the host's trouble prevented.
void refuse_start(Draft &d, const GrainKey &key, HostId id);
void rest_no_more(Draft &d, const GrainKey &key);
// Tick: what rested or was held back long enough is tried again.
void let_lapse(Draft &d);
// A running grain is a result from now on.
void end_grain(Draft &d, const GrainKey &key, HostId id, int signal, int code);
// The same without a report of its end: `why` is its standard error.
void give_up(Draft &d, const GrainKey &key, HostId id, int code, const std::string &why);
// It is submitted again, or its session is resumed: earlier failed starts no longer count.
void try_again(Draft &d, const GrainKey &key);
void try_all_again(Draft &d, const SessionKey &key);
void forgive_program(Draft &d, const ProgramOf &program);

// Of all incarnations; the largest of the sizes, the sum of the rest.
wire::Usage total_usage(const Grain &grain);
std::int64_t cpu_us(const wire::Usage &used);
std::int64_t saturated(std::int64_t a, std::int64_t b);  // their sum, or the largest number; neither is negative

// ---- a host comes back (return_host.cc) ----------------------------------------------------
// A ready grain runs on under the lease that it had.
bool reinstate(Draft &d, const GrainKey &key);
// A grain whose older lease the host holds: it counts again if the newer one has committed nothing
// and has run less. False: it does not.
bool take_back(Draft &d, const GrainKey &key, const wire::HeldGrain &held, HostId id);

// ---- once more (begin_again.cc) --------------------------------------------------------------
// A grain that is over is as submitted, at the front of its queue. What it used stays on its account; its leases go on.
void begin_again(Draft &d, const GrainKey &key);
// The same, but one that failed after a checkpoint goes on from it.
void go_on_again(Draft &d, const GrainKey &key);
// Of a grain that fails: where it would go on. Before what it wrote last is added.
void note_checkpoint(Course &course);

// ---- restart --and-after (forget_after.cc) --------------------------------------------------
// The grain is there. `forgets`: so many submissions the caller expects to go, else nothing happens.
void forget_after(Draft &d, const Caller &caller, const GrainKey &key, std::int32_t forgets, bool erases);

// ---- d_gwait (wait_grain.cc) --------------------------------------------------------------
// Follow-up for a session whose parked calls may have an answer now; nothing if none is parked.
void wake_waiters(Draft &d, const SessionKey &key);
void wake_all_waiters(Draft &d);
// All results below `next` count as sent.
void acknowledge(Draft &d, const SessionKey &key, std::int32_t next);
// Results that count as sent, or will when a parked call is over.
std::int32_t acknowledged(const Session &session);
// The results whose index is below `end`: killed and forgotten ones are none.
std::int32_t returned_below(const Session &session, std::int32_t end);
// Parked calls get this error (session closed, taken over).
void dismiss_waiters(Draft &d, const SessionKey &key, const Status &why);

}  // namespace dcs::core
