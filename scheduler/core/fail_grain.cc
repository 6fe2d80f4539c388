// Grains that stop running without having finished.
#include <algorithm>

#include "base/limits.h"
#include "scheduler/core/placement.h"

namespace dcs::core {

std::int64_t saturated(std::int64_t a, std::int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }

std::int64_t cpu_us(const wire::Usage &used) { return saturated(used.user_us, used.system_us); }

wire::Usage total_usage(const Grain &grain) {
    const wire::Usage &past = grain.course->past, &now = grain.course->current;
    const auto sum = saturated;
    return {.user_us = sum(past.user_us, now.user_us),
            .system_us = sum(past.system_us, now.system_us),
            .max_rss_kb = std::max(past.max_rss_kb, now.max_rss_kb),
            .minor_faults = sum(past.minor_faults, now.minor_faults),
            .major_faults = sum(past.major_faults, now.major_faults),
            .in_blocks = sum(past.in_blocks, now.in_blocks),
            .out_blocks = sum(past.out_blocks, now.out_blocks)};
}

void requeue_front(Draft &d, const GrainKey &key, bool keep_lease) {
    Grain &g = d.grain(key);
    DCS_REQUIRE(g.status() == GrainStatus::running, "only a running grain goes back to its queue");
    g.become(Ready{d.take_front(key.session)});
    if (!keep_lease) g.lessee = no_host;
    wake_waiters(d, key.session);  // perhaps no host can run it now
}

// Both ends say the most: what it is about, and what is wrong with it. Cut between characters of UTF-8.
std::string shortened(const std::string &text, std::size_t most) {
    if (text.size() <= most) return text;
    const auto inside = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80; };
    std::size_t front = most / 3, back = text.size() - (most - front - 3);
    while (front > 0 && inside(front)) --front;
    while (back < text.size() && inside(back)) ++back;
    return text.substr(0, front) + "..." + text.substr(back);
}

template <class T> static void push_latest(std::vector<T> &kept, T latest) {
    if (kept.size() >= limits::moves_kept) kept.erase(kept.begin());
    kept.push_back(std::move(latest));
}

void note_move(Draft &d, const GrainKey &key, MoveReason reason, const std::string &detail) {
    Grain &g = d.grain(key);
    push_latest(g.course.edit().moves.edit(),
                Move{reason, g.runs_on(), g.lease, shortened(detail, limits::move_detail_bytes)});
    push_latest(g.recent.edit().moved, d.now);
}

void requeue_all(Draft &d, HostId id, MoveReason reason, bool keep_lease) {
    DCS_REQUIRE(d.state.host(id), "only a known host loses its grains");
    const std::set<GrainKey> &there = d.state.running[static_cast<std::size_t>(id)];
    for (auto it = there.rbegin(); it != there.rend(); ++it) {
        note_move(d, *it, reason);
        requeue_front(d, *it, keep_lease);
    }
    for (const GrainKey &key : there) d.follow_up(PlaceGrain{key});
}

void hold_back(Draft &d, HostId id, const GrainKey &key) {
    Host &host = d.host(id);
    std::vector<HeldBack> &held = host.held_back;
    held.erase(
        std::remove_if(held.begin(), held.end(), [&](const HeldBack &h) { return h.until <= d.now || h.key == key; }),
        held.end());
    held.push_back(HeldBack{key, d.now + host.config->interval / 2});
}

namespace {
bool has_elsewhere(const State &state, const GrainKey &key, const Grain &g, HostId here) {
    for (std::size_t i = 0; i < state.hosts.size(); ++i) {
        const auto id = static_cast<HostId>(i);
        if (id != here && could_run(state, id, key.session, g)) return true;
    }
    return false;
}
}  // namespace

void fail_grain(Draft &d, const GrainKey &key, HostId id) {
    Grain &g = d.grain(key);
    DCS_REQUIRE(g.course->failures + 1 < g.demands->attempts, "the last failure is an end");
    g.course.edit().failures += 1;
    Recent &recent = g.recent.edit();
    recent.failures_there = static_cast<std::uint8_t>(recent.failed_on == id ? recent.failures_there + 1 : 1);
    recent.failed_on = id;
    if (recent.failures_there >= 2 && has_elsewhere(d.state, key, g, id)) {
        DCS_REQUIRE(!is_nogo(g, id), "nogo names a host once");
        g.course.edit().nogo.edit().push_back(id);
        d.event("grain " + to_text(key) + " failed twice on " + d.state.host(id)->config->name +
                " and will not be tried there again");
    }
    requeue_front(d, key, false);
    d.follow_up(PlaceGrain{key});
    d.follow_up(FillHost{id});
}

}  // namespace dcs::core
