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
    Instant at = std::min({state.next_call_in, state.gauge_at, state.courtesy.look_at, leave_time(state)});
    if (!state.with_scheduler()) at = std::min(at, state.link_at);
    if (!state.grouped.empty()) at = std::min(at, state.last_group + report_pause);
    if (!state.derived.deadlines.empty()) at = std::min(at, state.derived.deadlines.begin()->first);
    for (const auto *transfers : {&state.fetches, &state.puts})
        for (const auto &[digest, x] : *transfers) at = std::min({at, x.until, x.again});
    return at;
}

namespace {
std::string check_contents(const State &state) {
    for (const auto &[id, g] : state.grains) {
        const GrainContents &c = g.content;
        const std::string who = to_text(id) + ": ";
        if (c.to_place && (g.written || g.phase != Phase::queued)) return who + "it starts without its files";
        if (c.placing && !c.missing.empty()) return who + "files are placed whose contents are missing";
        for (const std::string &digest : c.missing)
            if (state.fetches.count(digest) == 0) return who + "a content is missing and not being fetched";
        for (const std::string &digest : c.unsent)
            if (g.looked_after_end && state.puts.count(digest) == 0)
                return who + "an output is not sent and no transfer exists";
        if (g.outstanding && g.outstanding->ended && !c.unsent.empty() && !g.hold)
            return who + "its end was reported before its outputs were there";
    }
    for (const auto *transfers : {&state.fetches, &state.puts}) {
        int busy = 0;
        for (const auto &[digest, x] : *transfers) {
            if (x.now == Transfer::Now::waiting && !state.with_scheduler()) return "a transfer waits without a link";
            if ((x.now == Transfer::Now::waiting) != (x.until != Instant::never()))
                return "a transfer waits without a time limit";
            busy += x.now != Transfer::Now::idle;
        }
        if (busy > 1) return "two contents are on their way at a time";
    }
    return {};
}
}  // namespace

std::string check(const State &state) {
    std::uint64_t in_flight = 0;
    int reports = 0;
    for (const auto &[id, g] : state.grains) {
        const std::string who = to_text(id) + ": ";
        if (g.acked + 1 < g.next_seq) return who + "acked lies before the first increment of this run";
        if ((g.phase == Phase::ended) != g.exit.has_value()) return who + "its end and its exit status disagree";
        if (g.outstanding && state.link != Link::ready) return who + "a report is on its way without a connection";
        if (g.ending == Ending::discard && g.outstanding) return who + "a discarded grain is reported";
        if (g.phase == Phase::queued && g.ending != Ending::none) return who + "a grain that never ran is being ended";
        if (g.held && (g.phase != Phase::queued || g.written || g.content.recorded))
            return who + "its launch is held, and its directory is made";
        if (g.staged && !g.tentative) return who + "it is staged without being tentative";
        if (g.phase == Phase::starting && g.tentative && !g.staged) return who + "started before it was verified";
        if (g.phase != Phase::starting && g.called_back) return who + "called back, and not at the launcher";
        if (g.phase != Phase::running && g.wall_at != Instant::never()) return who + "its time counts without a run";
        if (g.given_back != wire::GivenBack::no && g.ending != Ending::asked && g.ending != Ending::terminated)
            return who + "given back, but not being ended for that";
        if ((g.limit_signal != 0) != (g.ending == Ending::overrun)) return who + "its limit and its ending disagree";
        if (g.outstanding) {
            in_flight += g.outstanding->bytes;
            ++reports;
        }
    }
    if (reports > 1 && in_flight > in_flight_max) return "too many bytes of reports are on their way";
    if (std::string wrong = check_derived(state); !wrong.empty()) return wrong;
    return check_contents(state);
}

}  // namespace dcs::server
