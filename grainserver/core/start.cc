// From a Launch message to a running process.
#include <algorithm>
#include <utility>

#include "base/planted.h"
#include "base/require.h"
#include "grainserver/core/turn.h"

namespace dcs::server {
namespace {
constexpr Duration slot_retry = milliseconds(200);
constexpr Duration answer_later = milliseconds(50);
constexpr Duration slot_patience = seconds(15);  // a killed grain frees its slot within this time

void answer(Turn &t, const GrainId &id, bool ok, Code code, const std::string &text, bool staged = false) {
    if (!t.state.with_scheduler()) return;  // the next FirstCall states whether it is held
    t.emit(Send{
        wire::LaunchResult{wire::wire_of(id.key), id.incarnation, ok, staged, static_cast<std::int32_t>(code), text}});
}
void answer_staged(Turn &t, const GrainId &id) { answer(t, id, false, Code::ok, "", true); }

bool to_be_proved(const Grain &g) { return g.phase == Phase::queued && g.written && g.tentative && !g.staged; }
}  // namespace

void drop_unstarted(Turn &t, const GrainId &id, Code code, const std::string &text) {
    const Grain *g = t.find(id);
    if (g == nullptr) return;
    DCS_REQUIRE(g->phase == Phase::queued || g->phase == Phase::starting,
                "a grain with a process is reported, not dropped");
    t.log(Level::info, to_text(id) + " was not started: " + text);
    if (g->ending != Ending::discard) answer(t, id, false, code, text);
    // The next call-in may be a minute away, and each grain until then would be paused for this.
    if (code == Code::no_space && t.state.full_disk.empty()) t.state.gauge_at = std::min(t.state.gauge_at, t.now);
    t.emit(RemoveDir{id});
    t.forget(id);
}

bool is_small(const wire::Launch &launch) {
    return launch.input.empty() && launch.files.empty() && !launch.tentative && launch.next_seq == 1;
}

bool is_large(const wire::Demands &demands) { return demands.memory_mb > 0 || demands.cores > 1; }

bool waits_for_slot(const Grain &g) { return g.phase == Phase::queued && (g.written || g.held); }

bool has_process(const Grain &g) { return g.phase == Phase::starting || g.phase == Phase::running; }

void launch(Turn &t, wire::Launch message) {
    if (!t.state.with_scheduler()) return;
    const GrainId id{wire::key_of(message.key), message.incarnation};
    if (const Grain *g = t.find(id)) {
        if (g->ending == Ending::discard) answer(t, id, false, Code::refused, "it is being ended on this host");
        else if (g->phase == Phase::running || g->phase == Phase::ended) answer(t, id, true, Code::ok, "");
        else if (g->staged) answer_staged(t, id);
        return;  // otherwise the answer follows when it is known
    }
    std::vector<GrainId> older;
    auto it = t.state.grains.lower_bound({id.key, 0});
    for (; it != t.state.grains.end() && it->first.key == id.key; ++it) {
        if (it->first.incarnation > id.incarnation) return;  // an old message
        if (it->second.ending != Ending::discard) older.push_back(it->first);
    }
    for (const GrainId &old : older) discard(t, old, "the grain has a newer lease");
    if (message.checkpoint_length > message.input.size() || message.next_seq == 0 || message.argv.empty()) {
        answer(t, id, false, Code::invalid, "the launch message is inconsistent");
        return;
    }
    if (const std::string &why = shut_reason(t.state); !why.empty())  // the scheduler did not know yet
        return answer(t, id, false, Code::limit, "this host accepts no grains now: " + why);
    if (!message.demands.resources.empty() && t.state.launcher_up && !t.state.launcher_queues)
        return answer(t, id, false, Code::limit,
                      "this host's launcher is of an older release: it ends with its grains");
    Grain g;
    g.order = t.state.next_order++;
    g.large = is_large(message.demands);
    g.notice = message.demands.notice;
    g.wall_s = std::max(message.demands.wall_s, 0);
    g.tentative = message.tentative;
    g.next_seq = message.next_seq;
    g.acked = message.next_seq - 1;
    take_files(g, message.files);
    g.content.to_place = !message.files.empty();
    if (is_small(message)) {
        g.give_up_start = give_up_at(t, g);
        g.held = std::move(message);
        return t.add(id, std::move(g));
    }
    t.add(id, std::move(g));
    t.emit(WriteLaunch{id, std::move(message)});
}

// A host gets hundreds of small grains ahead. Few directories, used again and again, serve them all; to make as many as
// there are grains would take the kernel longer than to run those.
void write_held(Turn &t) {
    settle(t);
    const Derived &d = t.state.derived;
    const auto most = static_cast<std::size_t>(std::max(t.state.slots, 1) * written_here);
    while (!d.held.empty() && d.queue.size() + static_cast<std::size_t>(d.writing) < most) {
        const GrainId id = d.held.begin()->second;
        Grain *g = t.find(id);
        DCS_REQUIRE(g != nullptr && g->held && g->phase == Phase::queued, "only grains that wait are held");
        t.emit(WriteLaunch{id, std::move(*g->held)});
        g->held.reset();
        settle(t);
    }
}

void launch_written(Turn &t, const GrainId &id) {
    Grain *g = t.find(id);
    if (g == nullptr || g->written || g->held) return;
    g->content.recorded = true;
    if (!g->content.to_place) complete(t, id, *g);
}

void complete(Turn &t, const GrainId &id, Grain &g) {
    DCS_REQUIRE(g.phase == Phase::queued && !g.written, "a directory becomes complete once, before its grain starts");
    DCS_REQUIRE(g.content.recorded && !g.content.to_place, "its record and its files exist");
    g.written = true;
    if (g.give_up_start == Instant::never()) g.give_up_start = give_up_at(t, g);
    if (g.tentative && t.state.launcher_up) t.emit(ProveGrain{id});
    start_queued(t);
}

// The grain that a tentative one displaces is first asked for a checkpoint, and may take time to end.
Instant give_up_at(const Turn &t, const Grain &g) {
    return t.now + (g.tentative ? t.state.interval + slot_patience : std::max(t.state.interval, slot_patience));
}

void launch_unwritten(Turn &t, const LaunchUnwritten &x) {
    if (const Grain *g = t.find(x.id); g != nullptr && !g->written) drop_unstarted(t, x.id, x.code, x.text);
}

void proved(Turn &t, const GrainId &id) {
    Grain *g = t.find(id);
    if (g == nullptr || !to_be_proved(*g)) return;
    g->staged = true;
    answer_staged(t, id);
    start_queued(t);
}

void tell_staged(Turn &t) {
    for (const auto &[id, g] : t.state.grains)
        if (g.staged && (g.phase == Phase::queued || waits_there(t.state, g))) answer_staged(t, id);
}

// A launcher that queues answers when it has started the grain, or not at all.
void call_back(Turn &t, const GrainId &id, Grain &g, Code code, const std::string &text) {
    if (g.called_back) return;
    g.called_back = CalledBack{code, text};
    g.give_up_start = Instant::never();
    t.emit(RecallGrain{id});
}

bool waits_there(const State &state, const Grain &g) {
    return g.phase == Phase::starting && state.launcher_up && state.launcher_queues;
}

// A grain that was killed may still be exiting after its slot has been assigned to another. The slot is its own until
// then, and so are its memory and cores, which the scheduler may have given to a grain in another slot.
void start_queued(Turn &t) {
    if (!t.state.launcher_up) return;
    settle(t);
    const Derived &d = t.state.derived;
    const int most = t.state.launcher_queues ? t.state.slots * (1 + queued_there) : t.state.slots;
    const auto may_start = [&](const auto &place) {
        return d.lingering == 0 || !t.state.grains.at(place.second).large || planted("server.killed_is_gone");
    };
    while (d.processes < most) {
        const auto first = std::find_if(d.queue.begin(), d.queue.end(), may_start);
        if (first == d.queue.end()) return;
        const GrainId id = first->second;
        Grain *g = t.find(id);
        DCS_REQUIRE(g != nullptr && g->written, "queued grains exist and are complete");
        g->phase = Phase::starting;
        t.emit(StartGrain{id, g->staged});
        settle(t);
    }
}

void started(Turn &t, const GrainId &id) {
    Grain *g = t.find(id);
    if (g == nullptr || g->phase != Phase::starting) return;
    DCS_REQUIRE(g->written && !g->exit, "only a complete grain that has not ended is started");
    g->phase = Phase::running;
    g->called_back.reset();
    g->give_up_start = Instant::never();
    g->look_at = t.now + look_interval(t.state);
    g->began = t.now;
    g->wall_at = wall_end(*g, t.now);
    plan_signal(t.state, *g, t.now);
    courtesy_begins(t);
    DCS_REQUIRE(g->phase == Phase::running && g->wall_at >= t.now, "the time limit starts with the run");
    // While others wait here, most grains are short: the report of one that has ended states as much.
    g->answer_at = !g->tentative && others_wait(t) ? t.now + answer_later : t.now;
    answer_started(t, id, *g);
    t.touched.push_back(id);
    repeat_ending(t, id, *g);
    if (!t.state.job.leaving.empty()) ask_to_leave(t, id, *g);  // the launcher had started it before it was called back
}

void answer_started(Turn &t, const GrainId &id, Grain &g) {
    if (t.now < g.answer_at) return;
    g.answer_at = Instant::never();
    if (g.ending != Ending::discard) answer(t, id, true, Code::ok, "");
}

void start_failed(Turn &t, const StartFailed &x) {
    Grain *g = t.find(x.id);
    if (g == nullptr) return;
    if (to_be_proved(*g)) return drop_unstarted(t, x.id, x.code, x.text);
    if (g->phase != Phase::starting) return;
    if (g->ending != Ending::none) return drop_unstarted(t, x.id, Code::refused, "withdrawn: " + g->reason);
    if (!x.again) return drop_unstarted(t, x.id, x.code, x.text);
    if (g->called_back) return recalled(t, x.id);
    g->phase = Phase::queued;
    g->retry_start = t.now + slot_retry;
    if (t.now >= g->give_up_start) drop_unstarted(t, x.id, x.code, x.text);
}

void recalled(Turn &t, const GrainId &id) {
    Grain *g = t.find(id);
    if (g == nullptr || g->phase != Phase::starting) return;
    DCS_REQUIRE(!g->exit, "a grain that has not started has not ended");
    if (g->ending != Ending::none) return drop_unstarted(t, id, Code::refused, "withdrawn: " + g->reason);
    if (g->called_back) {
        const CalledBack why = *g->called_back;
        drop_unstarted(t, id, why.code, why.text);
        return start_queued(t);
    }
    g->phase = Phase::queued;
    g->give_up_start = give_up_at(t, *g);
    start_queued(t);
}

void hand_again(Turn &t) {
    if (!t.state.launcher_up) return;
    std::map<std::pair<bool, std::uint64_t>, GrainId> in_order;
    for (const auto &[id, g] : t.state.grains)
        if (g.phase == Phase::starting) in_order.emplace(std::pair{!g.staged, g.order}, id);
    for (const auto &[place, id] : in_order) {
        const Grain &g = *t.find(id);
        const bool unwanted = g.called_back || g.ending != Ending::none;
        if (unwanted && t.state.launcher_queues) t.emit(RecallGrain{id});
        else t.emit(StartGrain{id});
    }
}

void launcher_down(Turn &t) {
    t.state.launcher_up = false;
    t.state.launcher_gone = t.now;
    t.state.gauge_at = t.now + launcher_patience;
}

void launcher_up(Turn &t, const LauncherUp &its) {
    t.state.launcher_up = true;
    t.state.launcher_queues = its.queues;
    t.state.launcher_counts = its.counts;
    t.state.gauge_at = Instant::never();
    if (!std::exchange(t.state.no_launcher, {}).empty()) t.emit(Gauge{});
    hand_again(t);
    t.for_each([&](const GrainId &id, Grain &g) {
        if (to_be_proved(g)) t.emit(ProveGrain{id});
        else repeat_ending(t, id, g);
    });
    start_queued(t);
}

void drop_queued(Turn &t, const std::string &why) {
    std::vector<GrainId> queued;
    for (const auto &[id, g] : t.state.grains)
        if (waits_for_slot(g)) queued.push_back(id);
    const std::string text = "this host accepts no grains now: " + why;
    for (const GrainId &id : queued) drop_unstarted(t, id, Code::limit, text);
    t.for_each([&](const GrainId &id, Grain &g) {
        if (waits_there(t.state, g) && g.ending == Ending::none) call_back(t, id, g, Code::limit, text);
    });
}

void queue_tick(Turn &t) {
    std::vector<GrainId> late;
    t.for_due([&](const GrainId &id, Grain &g) {
        if (t.now >= g.retry_start) g.retry_start = Instant::never();
        if (t.now < g.give_up_start) return;
        if (waits_for_slot(g)) late.push_back(id);
        if (g.phase != Phase::starting) return;
        if (waits_there(t.state, g)) call_back(t, id, g, Code::limit, "no slot became free on this host");
        else g.give_up_start = t.now + slot_patience;  // the launcher has been asked, and will answer
    });
    for (const GrainId &id : late)
        drop_unstarted(
            t, id, Code::limit,
            t.state.launcher_up ? "no slot became free on this host" : "the launcher of this host is not running");
    start_queued(t);
}

}  // namespace dcs::server
