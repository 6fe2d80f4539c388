// The order of peers: the scheduler a few times, then the passive backup, then the scheduler again; and back to the
// scheduler as soon as it answers. A report that the backup has acknowledged is removed here, so its number is saved
// first, and is sent to the scheduler before anything else.

#include "base/require.h"
#include "grainserver/core/turn.h"

namespace dcs::server {
namespace {

bool anything_on_its_way(Turn &t) {
    settle(t);
    return t.state.derived.in_flight != 0;
}

// Postponed reports, and those of ended grains, are due with a new peer.
void report_all(Turn &t) {
    t.for_each([&](const GrainId &id, Grain &g) {
        g.hold = false;
        if (g.phase == Phase::running || (g.phase == Phase::ended && !g.looked_after_end)) t.emit(Look{id});
        else if (g.phase == Phase::ended) consider_report(t, id, g);
    });
}

}  // namespace

bool for_backup(const wire::AnyMessage &message) {
    return std::holds_alternative<wire::BackupReady>(message) || std::holds_alternative<wire::BackupHas>(message);
}

void scheduler_away(Turn &t) {
    State &s = t.state;
    DCS_REQUIRE(s.peer == Peer::scheduler, "only failures of the scheduler are counted");
    ++s.failures;
    rest(t, back_off(s.failures, s.interval, t.jitter));
    if (s.has_backup && s.failures >= tries_before_backup) connect_to(t, Peer::backup);
}

void backup_failed(Turn &t, const std::string &why) {
    t.log(Level::info, "the backup does not answer either: " + why + "; reports accumulate here");
    rest(t, back_off(t.state.failures, t.state.interval, t.jitter));
    t.state.peer = Peer::scheduler;
}

void backup_is(Turn &t, wire::BackupPlace place) {
    State &s = t.state;
    if (!s.asks_for_backup || s.backup_place == place) return;
    s.has_backup = !place.address.empty();
    t.log(Level::info, s.has_backup ? "the passive backup is " + place.name + " at " + place.address
                                    : "the pool no longer has a passive backup");
    s.backup_place = std::move(place);
    t.emit(SaveConfig{});
}

void backup_ready(Turn &t, const wire::BackupReady &ready) {
    State &s = t.state;
    if (s.link != Link::greeting) return;
    t.log(Level::info, "the backup accepts reports; it has " + std::to_string(ready.number) + " of this host so far");
    s.link = Link::ready;
    s.link_at = t.now + back_off(s.failures, s.interval, t.jitter);
    report_all(t);
}

void backup_has(Turn &t, const wire::BackupHas &has) {
    State &s = t.state;
    if (s.link != Link::ready) return;
    const bool had = has.ack.verdict == wire::Verdict::taken || has.ack.verdict == wire::Verdict::have_it;
    if (had && (s.backup_store != has.store || s.backup_number < has.number)) {
        s.backup_store = has.store;
        s.backup_number = has.number;
        t.emit(SaveConfig{});
    }
    if (has.ack.verdict == wire::Verdict::stale) return;  // only the scheduler can decide that
    acknowledged(t, has.ack);
}

void backup_tick(Turn &t) {
    DCS_REQUIRE(t.state.link == Link::ready && t.state.peer == Peer::backup, "only the backup's link is left");
    if (t.state.leaving) {  // its answers do not arrive
        t.emit(Disconnect{});
        rest(t, Duration{});
        return connect_now(t);
    }
    t.state.leaving = true;
    t.state.link_at = t.now + link_patience;
}

void leave_backup(Turn &t) {
    State &s = t.state;
    if (!s.leaving || s.link != Link::ready || anything_on_its_way(t)) return;
    t.emit(Disconnect{});
    rest(t, Duration{});
    connect_now(t);
}

}  // namespace dcs::server
