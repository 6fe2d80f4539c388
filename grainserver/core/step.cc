#include "grainserver/core/step.h"

#include <algorithm>

#include "base/require.h"
#include "grainserver/core/turn.h"

namespace dcs::server {
namespace {
struct Message {
    Turn &t;
    void operator()(wire::Configure &m) { configured(t, m); }
    void operator()(wire::Refused &m) { refused(t, m); }
    void operator()(wire::Launch &m) { launch(t, std::move(m)); }
    void operator()(wire::ReportAck &m) { acknowledged(t, m); }
    void operator()(wire::Withdraw &m) { withdraw(t, m); }
    void operator()(wire::ContentPiece &m) { content_piece(t, m); }
    void operator()(wire::ContentTaken &m) { content_taken(t, m); }
    void operator()(wire::BackupPlace &m) { backup_is(t, std::move(m)); }
    void operator()(wire::BackupReady &m) { backup_ready(t, m); }
    void operator()(wire::BackupHas &m) { backup_has(t, m); }
    void operator()(wire::Peek &m) { peek(t, m); }
    void operator()(wire::LogLevel &m) { t.emit(SetLogLevel{m.level}); }
    template <class Other> void operator()(Other &) {
        t.log(Level::warning, "the scheduler sent a message that is not for grain servers");
        reconnect(t);
    }
};

struct Happened {
    Turn &t;
    void operator()(Began &) {
        connect_now(t);
        t.state.slice_start = t.now;
        t.state.next_call_in = t.now + t.state.interval;
        t.state.job.idle_since = t.now;
        if (!t.state.launcher_up) launcher_down(t);
    }
    void operator()(Adopted &x) { adopted(t, x); }
    void operator()(LinkOpened &) { link_opened(t); }
    void operator()(LinkClosed &x) { link_closed(t, x.why); }
    void operator()(FromScheduler &x) {
        if (t.state.link != Link::greeting && t.state.link != Link::ready) return;
        if (for_backup(x.message) == (t.state.peer == Peer::backup)) return std::visit(Message{t}, x.message);
        if (const auto *no = std::get_if<wire::Refused>(&x.message); no && t.state.peer == Peer::backup)
            return t.log(Level::warning, "the backup refuses this server: " + no->text);  // and closes the connection
        t.log(Level::warning, "a message that is not for grain servers");
        reconnect(t);
    }
    void operator()(LaunchWritten &x) { launch_written(t, x.id); }
    void operator()(LaunchUnwritten &x) { launch_unwritten(t, x); }
    void operator()(LauncherUp &x) { launcher_up(t, x); }
    void operator()(LauncherDown &) { launcher_down(t); }
    void operator()(GrainProved &x) { proved(t, x.id); }
    void operator()(GrainStarted &x) { started(t, x.id); }
    void operator()(StartFailed &x) { start_failed(t, x); }
    void operator()(GrainRecalled &x) { recalled(t, x.id); }
    void operator()(GrainExited &x) { exited(t, x); }
    void operator()(Looked &x) { looked(t, std::move(x)); }
    void operator()(ReportUnsendable &x) { unsendable(t, x); }
    void operator()(Gauged &x) { gauged(t, x); }
    void operator()(FilesPlaced &x) { files_placed(t, x.id); }
    void operator()(FilesMissing &x) { files_missing(t, x); }
    void operator()(FilesUnplaced &x) { files_unplaced(t, x); }
    void operator()(PieceKept &x) { piece_kept(t, x); }
    void operator()(PieceUnkept &x) { piece_unkept(t, x); }
    void operator()(OutputsKept &x) { outputs_kept(t, x); }
    void operator()(OutputsUnkept &x) { outputs_unkept(t, x); }
    void operator()(PieceUnreadable &x) { piece_unreadable(t, x); }
    void operator()(Watched &x) { watched(t, x); }
    void operator()(Leave &x) { leave(t, x.why); }
    void operator()(Tick &) {
        link_tick(t);
        slice_tick(t);
        ending_tick(t);
        report_tick(t);
        queue_tick(t);
        courtesy_tick(t);
    }
};
}  // namespace

std::vector<Effect> step(State &state, Instant now, double jitter, Input input) {
    DCS_REQUIRE(jitter >= 0 && jitter < 1, "jitter is in [0, 1)");
    Turn t{state, now, jitter, {}};
    std::visit(Happened{t}, input);
    fetch_on(t);
    put_on(t);
    leave_backup(t);
    job_goes_on(t);
    write_held(t);
    settle(t);
    tell_ending(t);
    DCS_REQUIRE(state.interval.ns > 0 && state.slots >= 0, "a received configuration is made valid");
    return std::move(t.out);
}

std::string to_text(const GrainId &id) { return to_text(id.key) + " incarnation " + std::to_string(id.incarnation); }

Instant next_deadline(const State &state) {
    Instant at =
        std::min({state.next_call_in, state.gauge_at, state.ending_at, state.courtesy.look_at, leave_time(state)});
    if (!state.with_scheduler()) at = std::min(at, state.link_at);
    if (!state.grouped.empty()) at = std::min(at, state.last_group + report_pause);
    if (!state.derived.deadlines.empty()) at = std::min(at, state.derived.deadlines.begin()->first);
    for (const auto *transfers : {&state.fetches, &state.puts})
        for (const auto &[digest, x] : *transfers) at = std::min({at, x.until, x.again});
    return at;
}

}  // namespace dcs::server
