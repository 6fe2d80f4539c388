#pragma once
// One step in progress: the parts of step(), one file each. Private to this folder.
#include "grainserver/core/input_effect.h"

namespace dcs::server {

struct Turn {
    State &state;
    Instant now;
    double jitter;
    std::vector<Effect> out;
    std::vector<GrainId> touched;  // changed, and not in step with State::derived yet

    void emit(Effect effect) { out.push_back(std::move(effect)); }
    void log(Level level, std::string text) { out.push_back(Log{level, std::move(text)}); }
    // The caller may change it.
    Grain *find(const GrainId &id) {
        const auto it = state.grains.find(id);
        if (it != state.grains.end()) touched.push_back(id);
        return it == state.grains.end() ? nullptr : &it->second;
    }
    // Calls `change(id, grain)` for each grain; it must not remove any.
    template <class Change> void for_each(Change change) {
        for (auto &[id, g] : state.grains) {
            touched.push_back(id);
            change(id, g);
        }
    }
    // The same for those with a deadline that has passed; others may be thousands.
    template <class Change> void for_due(Change change) {
        for (const GrainId &id : due())
            if (Grain *g = find(id)) change(id, *g);
    }
    std::vector<GrainId> due();                // in their order
    void add(const GrainId &id, Grain grain);  // one that is not there yet
    void forget(const GrainId &id);
};

// derived.cc
// State::derived is in step with the grains. A grain that is changed afterwards must be touched again.
void settle(Turn &t);
std::string check_derived(const State &state);  // for tests; empty: it is

// link.cc
void connect_now(Turn &t);
void link_opened(Turn &t);
void link_closed(Turn &t, const std::string &why);
void configured(Turn &t, const wire::Configure &c);
void refused(Turn &t, const wire::Refused &r);
void link_tick(Turn &t);
void reconnect(Turn &t);  // drops the connection on purpose: the next FirstCall states again what this server holds
Duration back_off(int failures, Duration interval, double jitter);

void rest(Turn &t, Duration pause);  // no link for that time
void connect_to(Turn &t, Peer peer);

// backup.cc
void scheduler_away(Turn &t);  // a try of the scheduler failed: try again, or use the backup
void backup_failed(Turn &t, const std::string &why);
void backup_is(Turn &t, wire::BackupPlace place);
void backup_ready(Turn &t, const wire::BackupReady &ready);
void backup_has(Turn &t, const wire::BackupHas &has);
void backup_tick(Turn &t);   // time to try the scheduler
void leave_backup(Turn &t);  // after every step: disconnects if possible
bool for_backup(const wire::AnyMessage &message);

// slice.cc
void call_in(Turn &t, bool at_boundary);
void slice_tick(Turn &t);
void tell_ending(Turn &t);  // after every step
void plan_signal(const State &state, Grain &grain, Instant from);
Duration look_interval(const State &state);  // between looks at a running grain's room
Duration lead_of(std::int32_t notice_minutes, Duration interval);
void gauged(Turn &t, const Gauged &g);

// start.cc
void launch(Turn &t, wire::Launch message);
void write_held(Turn &t);
void launch_written(Turn &t, const GrainId &id);
void complete(Turn &t, const GrainId &id, Grain &g);  // its directory is complete: it may start
void drop_unstarted(Turn &t, const GrainId &id, Code code, const std::string &text);
void launch_unwritten(Turn &t, const LaunchUnwritten &x);
void start_queued(Turn &t);
void drop_queued(Turn &t, const std::string &why);
Instant give_up_at(const Turn &t, const Grain &g);
void proved(Turn &t, const GrainId &id);
void tell_staged(Turn &t);  // again, to a scheduler that may not have received it
void started(Turn &t, const GrainId &id);
void answer_started(Turn &t, const GrainId &id, Grain &g);
void start_failed(Turn &t, const StartFailed &x);
void launcher_up(Turn &t, const LauncherUp &its);
void launcher_down(Turn &t);
void recalled(Turn &t, const GrainId &id);
void call_back(Turn &t, const GrainId &id, Grain &g, Code code, const std::string &text);  // of the launcher
bool waits_there(const State &state, const Grain &g);  // it may wait at the launcher
void hand_again(Turn &t);  // to a launcher that may not have received it, or does not know the number of slots
void queue_tick(Turn &t);

// report.cc
void looked(Turn &t, Looked x);
void consider_report(Turn &t, const GrainId &id, Grain &g);
void consider_crowded(Turn &t);
void report_tick(Turn &t);
bool others_wait(Turn &t);  // for a slot here
void acknowledged(Turn &t, const wire::ReportAck &ack);
void unsendable(Turn &t, const ReportUnsendable &x);
bool innocent_end(const Grain &g);
void peek(Turn &t, const wire::Peek &p);

// courtesy.cc
void watched(Turn &t, const Watched &x);
void courtesy_tick(Turn &t);
void courtesy_idle(Turn &t);    // at a call-in: the frequency of looks at a host without grains
void courtesy_begins(Turn &t);  // a grain runs

// job.cc
void leave(Turn &t, const std::string &why);  // returns all grains, with checkpoints; once
void ask_to_leave(Turn &t, const GrainId &id, Grain &g);
void job_goes_on(Turn &t);  // after every step: leaves if it is time
bool is_engines(const State &state, const Grain &g);

// ending.cc
void ask_to_end(Turn &t, const GrainId &id, Grain &g, const std::string &reason,
                wire::GivenBack given_back = wire::GivenBack::no);
void withdraw(Turn &t, const wire::Withdraw &w);
void withdraw_looked(Turn &t, const GrainId &id, Grain &g);
// May erase the grain. With a signal it gets SIGTERM first, as one that is withdrawn.
enum class Farewell { none, signal };
void discard(Turn &t, const GrainId &id, const std::string &reason, Farewell farewell = Farewell::none);
void overrun(Turn &t, const GrainId &id, Grain &g, const std::string &reason, std::int32_t signal);
// It cannot be reported: tells the scheduler that this host no longer has it. Code::limit: and that the grain is not
// the cause.
void lose(Turn &t, const GrainId &id, const std::string &reason, Code code = Code::io_error);
void exited(Turn &t, const GrainExited &x);
void ending_tick(Turn &t);
void repeat_ending(Turn &t, const GrainId &id, Grain &g);  // to a launcher that may not have received it
void adopted(Turn &t, const Adopted &a);
bool has_process(const Grain &g);
bool waits_for_slot(const Grain &g);  // only for that, and for a limited time
Instant wall_end(const Grain &g, Instant since);

// content_fetch.cc
// Continues the transfer that is under way, or begins the next one. `lost`: called for those that had a connection.
// `ask`: requests, or sends, the piece at x.asked.
using AskPiece = void (*)(Turn &t, const std::string &digest, const Transfer &x);
void transfer_on(Turn &t, std::map<std::string, Transfer> &transfers, void (*lost)(Transfer &), AskPiece ask);
void stop_waiting(Transfer &x, Transfer::Now now);
void take_files(Grain &g, const std::vector<wire::GrainFile> &files);
void files_placed(Turn &t, const GrainId &id);
void files_missing(Turn &t, const FilesMissing &x);
void files_unplaced(Turn &t, const FilesUnplaced &x);
void content_piece(Turn &t, wire::ContentPiece &piece);
void piece_kept(Turn &t, const PieceKept &x);
void piece_unkept(Turn &t, const PieceUnkept &x);
void fetch_on(Turn &t);  // after every step: continues the due transfers

// content_put.cc
bool outputs_are_there(const Grain &g);  // the scheduler has them: its last report may be sent
void put_again(Grain &g);
void outputs_kept(Turn &t, const OutputsKept &x);
void outputs_unkept(Turn &t, const OutputsUnkept &x);
void content_taken(Turn &t, const wire::ContentTaken &taken);
void piece_unreadable(Turn &t, const PieceUnreadable &x);
void put_on(Turn &t);

}  // namespace dcs::server
