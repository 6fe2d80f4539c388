// The time slice: a call-in at its end, and a request for a checkpoint before that.
#include <algorithm>

#include "base/require.h"
#include "base/known_words.h"
#include "base/version.h"
#include "grainserver/core/turn.h"

namespace dcs::server {
namespace {
constexpr Duration lead_min = seconds(2);
constexpr Duration look_interval_max = seconds(5);  // so that excessive output is noticed soon
constexpr int resend_slices = 3;
constexpr Duration resend_min = seconds(60);
constexpr Duration quick_end = seconds(1);  // an end of a killed grain that takes no longer is not reported
}  // namespace

Duration look_interval(const State &state) { return std::min(state.interval, look_interval_max); }

// The minutes of notice, at most the slice; without notice, enough for a checkpoint to arrive with this call-in.
Duration lead_of(std::int32_t notice_minutes, Duration interval) {
    const Duration asked = seconds(60) * std::clamp(notice_minutes, 0, 100'000);
    return std::min(std::max(asked, std::min(lead_min, interval / 3)), interval);
}

// `from`: the start of the grain or of the slice, whichever is later. A grain that started after the moment
// of warning gets no signal before the next slice.
void plan_signal(const State &state, Grain &grain, Instant from) {
    DCS_REQUIRE(grain.phase == Phase::running, "only a process gets a signal");
    const Duration lead = lead_of(grain.notice, state.interval);
    const Instant at{state.next_call_in.ns - lead.ns};
    grain.signal_at = at < from ? Instant::never() : at;
}

void call_in(Turn &t, bool at_boundary) {
    State &s = t.state;
    DCS_REQUIRE(s.interval.ns > 0, "a slice has a length");
    s.slice_start = t.now;
    s.next_call_in = t.now + s.interval;
    const bool ready = s.with_scheduler();
    const Duration patience = std::max(s.interval * resend_slices, resend_min);
    t.for_each([&](const GrainId &id, Grain &g) {
        g.hold = false;
        if (g.outstanding && t.now - g.outstanding->since > patience) g.outstanding.reset();
        if (g.phase == Phase::running) {
            plan_signal(s, g, t.now);
            g.report_even_nothing = ready && g.ending != Ending::discard;
            g.look_at = t.now + look_interval(s);
            t.emit(Look{id});
        } else if (g.phase == Phase::ended) {
            if (g.looked_after_end) consider_report(t, id, g);
            else t.emit(Look{id});
        }
    });
    courtesy_idle(t);
    if (ready) t.emit(Gauge{at_boundary});
}

void slice_tick(Turn &t) {
    State &s = t.state;
    t.for_due([&](const GrainId &id, Grain &g) {
        if (g.phase != Phase::running) return;
        answer_started(t, id, g);
        bool look = false;
        if (t.now >= g.signal_at) {
            g.signal_at = Instant::never();
            g.want_signal = g.want_signal || g.ending == Ending::none;
            look = true;
        }
        if (t.now >= g.look_at) {
            g.look_at = t.now + look_interval(s);
            look = true;
        }
        if (look) t.emit(Look{id});
    });
    if (t.now >= s.next_call_in) return call_in(t, true);
    if (t.now < std::min(s.gauge_at, s.ending_at)) return;
    if (t.now >= s.gauge_at) s.gauge_at = Instant::never();
    s.told_ending = s.derived.ending;
    t.emit(Gauge{});
}

// How many grains are ending is reported when it has changed and stays so for a moment.
void tell_ending(Turn &t) {
    State &s = t.state;
    if (!s.with_scheduler() || s.told_ending == s.derived.ending) s.ending_at = Instant::never();
    else s.ending_at = std::min(s.ending_at, t.now + quick_end);
}

// Load and memory are sent after the reports of the same call-in.
// The call-in that follows carries it to the scheduler.
void note_disk(Turn &t, bool full) {
    if (full) t.state.full_seen = t.now;
    if (full == !t.state.full_disk.empty()) return;
    t.state.full_disk = full ? full_disk_words : "";
    t.log(full ? Level::error : Level::info,
          full ? "accepting no grains: " + t.state.full_disk : "the disk has room: accepting grains again");
    if (full) drop_queued(t, t.state.full_disk);
}

void note_launcher(Turn &t) {
    State &s = t.state;
    if (s.launcher_up || t.now - s.launcher_gone < launcher_patience || !s.no_launcher.empty()) return;
    s.no_launcher = no_launcher_words;
    t.log(Level::error, "accepting no grains: " + s.no_launcher);
    drop_queued(t, s.no_launcher);
}

const std::string &shut_reason(const State &state) {
    for (const std::string *why : {&state.courtesy.shut, &state.no_launcher})
        if (!why->empty()) return *why;
    return state.full_disk;
}

// For the scheduler's administrators, who read no logs of hosts.
std::string warning_of(const State &s, bool uids_lost) {
    const bool limited = s.limits.memory_mb > 0 || s.limits.processes > 0;
    std::string text;
    if (s.launcher_counts && limited)
        text = "its launcher cannot use control groups, and so counts memory and processes of grains";
    if (uids_lost)
        text += std::string(text.empty() ? "" : "; ") +
                "/run/dcs/uids.lock there was removed: its grain servers and launchers must be restarted";
    return text;
}

void gauged(Turn &t, const Gauged &g) {
    note_disk(t, g.disk_full);
    note_launcher(t);
    if (g.disk_full) t.state.gauge_at = std::min(t.state.gauge_at, t.now + full_disk_look);
    if (!t.state.with_scheduler()) return;
    t.state.told_ending = t.state.derived.ending;
    t.emit(Send{wire::CallIn{g.load, g.free_memory_kb, g.boundary, shut_reason(t.state), g.memory_kb, t.state.resources,
                             DCS_VERSION, t.state.limits, warning_of(t.state, g.uids_lost), t.state.told_ending}});
}

}  // namespace dcs::server
