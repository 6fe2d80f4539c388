// Grains handed to a host ahead of its free slots, so that no slot waits for a round trip or a commit: about as many as
// end there in a quarter of a second, since the server makes a directory for each. They are leased like all others,
// wait in the server's queue, and start in their order when slots become free.
//
// Only grains that take one core and ask for nothing else are handed out so: whatever ends there leaves room for one of
// them. They come strictly in the order in which they would get a free slot, and an older release's server, which
// expects no more than its slots, gets none. They are called back when a grain of an older session wants the
// host, when a slot elsewhere finds nothing to do, and when the host is drained.
#include <algorithm>

#include "base/planted.h"
#include "scheduler/core/ahead.h"
#include "scheduler/core/placement.h"

namespace dcs::core {
namespace {

constexpr Duration window = seconds(1), handed_ahead = milliseconds(250);
constexpr std::int64_t most_handed_ahead = 256;
// Before what was called back has come back, more is not.
constexpr Duration recall_pause = seconds(1);
// Hosts considered for one grain or slot: each returns many.
constexpr int hosts_asked = 8;

bool is_small(const Grain &g) {
    const wire::Demands &demand = *g.demands;
    return demand.cores <= 1 && demand.memory_mb == 0 && demand.thrash == 0 && demand.wall_s == 0 &&
           demand.resources.empty() && g.files->digests.empty();
}

// Whatever runs there now has ended when one of these starts.
Vacancy vacancy_ahead(const State &state, HostId id) { return {.freed = state.used[static_cast<std::size_t>(id)]}; }

template <class Wanted>
std::size_t recall(Draft &d, HostId id, std::size_t most, const std::string &why, Wanted &&wanted) {
    const std::set<GrainKey> &ahead = d.state.ahead[static_cast<std::size_t>(id)];
    std::size_t recalled = 0;
    for (auto key = ahead.rbegin(); key != ahead.rend() && recalled < most; ++key) {
        if (!wanted(*key)) continue;
        d.call_back(id, *key, d.state.grain(*key)->lease, why);
        ++recalled;
    }
    if (recalled > 0) {
        d.host(id).pace.recalled = d.now;
        d.event(std::to_string(recalled) + " grains waiting on " + d.state.host_name(id) + " are withdrawn: " + why);
    }
    return recalled;
}

bool recalled_lately(const Draft &d, HostId id) {
    const Instant last = d.state.host(id)->pace.recalled;
    return last != Instant{} && d.now - last < recall_pause;
}

// The first few hosts on which grains wait, of which nothing was called back a moment ago.
template <class Do> void each_crowded(const Draft &d, Do &&look) {
    int asked = 0;
    for (const HostId id : d.state.crowded) {
        if (asked++ == hosts_asked) return;
        if (recalled_lately(d, id)) continue;
        if (look(id)) return;
    }
}

}  // namespace

std::size_t on_slots(const State &state, HostId id) {
    const auto index = static_cast<std::size_t>(id);
    const std::size_t there = state.running[index].size();
    const auto slots = static_cast<std::size_t>(std::max(0, state.hosts[index].config->slots));
    return std::max(there - state.ahead[index].size(), std::min(there, slots));
}

void note_pace(Draft &d, HostId id) {
    Pace &pace = d.host(id).pace;
    if (const Duration passed = d.now - pace.since; passed >= window) {
        pace.ahead = static_cast<std::int32_t>(std::min(most_handed_ahead, pace.ended * handed_ahead.ns / passed.ns));
        pace.since = d.now;
        pace.ended = 0;
    }
    ++pace.ended;
}

void slowed_down(Draft &d, const GrainKey &key, HostId id) {
    d.host(id).pace.ahead = 0;
    requeue_front(d, key, false);
}

bool may_lead(const State &state, HostId id) {
    const Host &host = *state.host(id);
    if (host.pace.ahead == 0 || host.form <= wire::positional_form || !state.takes_grains(id)) return false;
    const auto there = static_cast<std::int64_t>(state.running[static_cast<std::size_t>(id)].size());
    return there >= host.config->slots && there < std::int64_t{host.config->slots} + host.pace.ahead;
}

void fill_ahead(Draft &d, HostId id) {
    if (!may_lead(d.state, id)) return;
    const std::optional<GrainKey> first = first_for_host(d.state, d.now, id, vacancy_ahead(d.state, id));
    if (!first || !is_small(*d.state.grain(*first))) return;
    launch(d, *first, id, false);
    d.follow_up(FillHost{id});
}

void recall_for_older(Draft &d, const GrainKey &key, const Grain &grain) {
    if (d.state.policy.fair_share || planted("core.no_recall")) return;
    const std::uint64_t seniority = d.state.session(key.session)->info.seniority;
    each_crowded(d, [&](HostId id) {
        if (!would_take(d.state, d.now, id, key, grain, vacancy_ahead(d.state, id))) return false;
        return recall(d, id, most_handed_ahead, "grain " + to_text(key) + " comes first", [&](const GrainKey &there) {
                   return d.state.session(there.session)->info.seniority > seniority;
               }) > 0;
    });
}

void recall_of(Draft &d, const SessionKey &session, const std::string &why) {
    if (planted("core.no_recall_of")) return;
    for (const HostId id : d.state.crowded)
        if (!recalled_lately(d, id))
            (void)recall(d, id, most_handed_ahead, "session " + to_text(session) + " " + why,
                         [&](const GrainKey &there) { return there.session == session; });
}

void recall_for_idle(Draft &d, HostId idle) {
    each_crowded(d, [&](HostId id) {
        if (id == idle) return false;
        const std::size_t half = (d.state.ahead[static_cast<std::size_t>(id)].size() + 1) / 2;
        return recall(d, id, half, d.state.host_name(idle) + " has a free slot", [&](const GrainKey &there) {
                   return would_take(d.state, d.now, idle, there, *d.state.grain(there), {});
               }) > 0;
    });
}

void recall_all(Draft &d, HostId id, const std::string &why) {
    (void)recall(d, id, static_cast<std::size_t>(-1), why, [](const GrainKey &) { return true; });
}

bool called_back(const Draft &d, HostId id, const Grain &grain) {
    return grain.ahead && d.state.host(id)->pace.recalled != Instant{};
}

}  // namespace dcs::core
