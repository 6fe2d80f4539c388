// Which peer to connect to, and when.
#include <algorithm>

#include "base/known_words.h"
#include "base/planted.h"
#include "base/require.h"
#include "grainserver/core/turn.h"

namespace dcs::server {
namespace {
constexpr Duration first_retry = milliseconds(200);
constexpr Duration retry_max = seconds(30);
constexpr Duration interval_min = milliseconds(50);
// A refused server cannot know when the host table has it again: it asks after 1.6 s, later every 12 s, plus or minus a
// quarter.
constexpr Duration refused_max = seconds(12);
constexpr int refused_from = 4;  // of the pauses of back_off()

void forget_reports_on_the_way(Turn &t) {
    t.for_each([](const GrainId &, Grain &g) {
        g.outstanding.reset();
        g.report_even_nothing = false;
    });
}

}  // namespace

void rest(Turn &t, Duration pause) {
    forget_reports_on_the_way(t);
    t.state.link = Link::down;
    t.state.leaving = false;
    t.state.link_at = t.now + pause;
}

// 0.2 s, doubled each time, at most the interval or 30 s; plus or minus a quarter, so that many
// servers do not reconnect at the same time.
Duration back_off(int failures, Duration interval, double jitter) {
    DCS_REQUIRE(interval.ns > 0 && jitter >= 0 && jitter < 1, "a pause has a length");
    const Duration most = std::max(std::min(interval, retry_max), first_retry);
    Duration pause = first_retry;
    for (int i = 1; i < failures && pause < most; ++i) pause = pause * 2;
    pause = std::min(pause, most);
    return Duration{static_cast<std::int64_t>(static_cast<double>(pause.ns) * (0.75 + jitter / 2))};
}

void connect_to(Turn &t, Peer peer) {
    DCS_REQUIRE(t.state.link == Link::down, "there is one connection at a time");
    t.state.link = Link::connecting;
    t.state.peer = peer;
    t.state.link_at = t.now + link_patience;
    t.emit(Connect{peer});
}

void connect_now(Turn &t) { connect_to(t, Peer::scheduler); }

void link_opened(Turn &t) {
    if (t.state.link != Link::connecting) return;
    wire::FirstCall call;
    call.host = t.state.host;
    call.binary_class = t.state.binary_class;
    call.boot_id = t.state.boot_id;
    call.instance = t.state.instance;
    call.confinement = t.state.confinement;
    const bool to_backup = t.state.peer == Peer::backup;  // the list of held grains is not for the backup
    for (const auto &[id, g] : t.state.grains)
        if (g.ending != Ending::discard && !to_backup)
            call.held.push_back({wire::wire_of(id.key), id.incarnation, g.cpu_us});
    t.state.link = Link::greeting;
    t.state.link_at = t.now + link_patience;
    if (!to_backup && t.state.backup_number != 0 && !planted("server.hide_the_backup"))
        t.emit(Send{wire::HeldByBackup{t.state.backup_store, t.state.backup_number}});
    t.emit(Send{std::move(call)});
}

void link_closed(Turn &t, const std::string &why) {
    if (t.state.link == Link::down) return;
    if (t.state.peer == Peer::backup) return backup_failed(t, why);
    if (t.state.told_down != why) t.log(Level::warning, "no connection to the scheduler: " + why + "; trying again");
    t.state.told_down = why;
    scheduler_away(t);
}

void reconnect(Turn &t) {
    if (t.state.link == Link::down) return;
    t.emit(Disconnect{});
    ++t.state.failures;
    rest(t, back_off(t.state.failures, t.state.interval, t.jitter));
}

namespace {

void ask_later(Turn &t, const std::string &why) {
    State &s = t.state;
    if (s.told_down != why) t.emit(Log{Level::error, why + "; asking again, at least every 15 s", true});
    s.told_down = why;
    t.emit(Disconnect{});
    s.failures = 0;
    rest(t, back_off(refused_from + s.refusals++, std::min(s.interval, refused_max), t.jitter));
}

}  // namespace

void configured(Turn &t, const wire::Configure &c) {
    State &s = t.state;
    const Duration interval = std::max(seconds_of(std::clamp(c.interval_s, 0.0, 1e9)), interval_min);
    const std::int32_t slots = std::max(c.slots, 0);
    if (c.epoch < s.epoch) {
        const std::string epochs =
            std::to_string(s.epoch) + ", and this scheduler is in epoch " + std::to_string(c.epoch);
        t.emit(Send{wire::CallIn{.shut = std::string(later_epoch_words) + epochs}});
        return ask_later(t, "this server refuses the scheduler: it is in epoch " + std::to_string(c.epoch) +
                                ", but this server has worked for epoch " + std::to_string(s.epoch) +
                                ", so its state is out of date: a copy of it was promoted since then (if this is a new "
                                "pool, remove `configured` from this server's directory while it is stopped)");
    }
    const bool slots_changed = slots != s.slots;
    const bool changed = interval != s.interval || slots_changed || c.epoch != s.epoch || s.backup_number != 0;
    s.interval = interval;
    s.slots = slots;
    s.epoch = c.epoch;
    s.backup_store = s.backup_number = 0;  // the scheduler has the backup's reports, or continues without them
    if (changed) t.emit(SaveConfig{});
    if (s.link == Link::greeting) t.log(Level::info, "the scheduler has accepted this server");
    s.link = Link::ready;
    s.link_at = Instant::never();
    s.failures = s.refusals = 0;
    s.told_down.clear();
    call_in(t, false);  // not at the end of a slice
    tell_staged(t);
    if (slots_changed && t.state.launcher_queues) hand_again(t);
    start_queued(t);
}

void refused(Turn &t, const wire::Refused &r) { ask_later(t, "the scheduler refuses this server: " + r.text); }

void link_tick(Turn &t) {
    State &s = t.state;
    if (s.with_scheduler() || t.now < s.link_at) return;
    if (s.link == Link::ready) return backup_tick(t);
    if (s.link == Link::down) return connect_now(t);
    t.emit(Disconnect{});
    link_closed(t, s.link == Link::connecting ? "it does not accept" : "it does not answer the first call");
}

}  // namespace dcs::server
