// At the end of a time slice, when no free slot is left for them, grains of older sessions take
// the places of grains of younger ones. A tentative launch comes first; only when the server has
// staged the grain and says that it can run is the other one withdrawn. Until that one has ended the
// host has one grain more than slots; the server starts the staged one when there is room.
//
// What is in progress is volatile: if it is forgotten, the server gives the staged grain up when no
// slot becomes free, and says so.
#include <algorithm>
#include <tuple>

#include "scheduler/core/ahead.h"
#include "scheduler/core/placement.h"

namespace dcs::core {
namespace {

bool leased_there(const State &state, const GrainKey &key, HostId id, Incarnation lease) {
    const Grain *g = state.grain(key);
    return g && g->status() == GrainStatus::running && g->runs_on() == id && g->lease == lease;
}

// Still under way: the staged grain waits and the other one has not ended.
bool in_progress(const State &state, HostId id, const Usurpation &u) {
    return leased_there(state, u.by, id, u.incarnation) && leased_there(state, u.displaced, id, u.displaced_lease);
}

// Of the youngest session; there the one that has run least since it came.
std::optional<GrainKey> weakest(const State &state, HostId id, const std::vector<Usurpation> &under_way) {
    std::optional<GrainKey> weakest;
    std::tuple<std::uint64_t, std::int64_t, GrainNumber> rank;
    const std::set<GrainKey> &ahead = state.ahead[static_cast<std::size_t>(id)];
    for (const GrainKey &key : state.running[static_cast<std::size_t>(id)]) {
        if (ahead.count(key) != 0) continue;  // takes no slot
        const bool involved = std::any_of(under_way.begin(), under_way.end(),
                                          [&](const Usurpation &u) { return u.by == key || u.displaced == key; });
        if (involved) continue;
        const Grain &g = *state.grain(key);
        const std::uint64_t seniority = state.session(key.session)->info.seniority;
        const auto candidate = std::make_tuple(seniority, -cpu_us(g.course->current), key.grain);
        if (weakest && candidate <= rank) continue;
        weakest = key;
        rank = candidate;
    }
    return weakest;
}

}  // namespace

std::vector<Usurpation> usurpations(const State &state, HostId id) {
    std::vector<Usurpation> left;
    for (const Usurpation &u : state.host(id)->usurping)
        if (in_progress(state, id, u)) left.push_back(u);
    return left;
}

namespace {

// Where the next grain of an older session could go.
struct Place {
    GrainKey displaced;
    Vacancy vacancy;
    std::vector<Usurpation> under_way;
};

std::optional<Place> next_place(const State &state, HostId id) {
    const Host *host = state.host(id);
    if (!host || !host->configured || host->status != HostStatus::active || host->conn == no_connection) return {};
    if (host->setting.drained || !host->shut.empty() || too_open(*host) || state.policy.fair_share) return {};
    std::vector<Usurpation> under_way = usurpations(state, id);
    const std::size_t there = on_slots(state, id);
    // A limit that was lowered is met by attrition first.
    if (there > static_cast<std::size_t>(std::max(0, host->config->slots)) + under_way.size()) return {};
    const std::optional<GrainKey> victim = weakest(state, id, under_way);
    if (!victim) return {};
    Place place{*victim, {}, {}};
    place.vacancy.senior_to = state.session(victim->session)->info.seniority;
    place.vacancy.freed = used_by(state.grain(*victim)->demands);
    for (const Usurpation &u : under_way) place.vacancy.freed.add(used_by(state.grain(u.displaced)->demands));
    place.under_way = std::move(under_way);
    return place;
}

}  // namespace

std::optional<GrainKey> would_usurp(const State &state, Instant now, HostId id) {
    const std::optional<Place> place = next_place(state, id);
    return place ? first_for_host(state, now, id, place->vacancy) : std::optional<GrainKey>();
}

void usurp(Draft &d, const Usurp &in) {
    std::optional<Place> place = next_place(d.state, in.host);
    if (!place) return;
    const std::optional<GrainKey> senior = first_for_host(d.state, d.now, in.host, place->vacancy);
    if (!senior) return;
    const Incarnation displaced_lease = d.state.grain(place->displaced)->lease;
    DCS_REQUIRE(d.state.session(senior->session)->info.seniority < place->vacancy.senior_to,
                "only a grain of an older session displaces one");
    launch(d, *senior, in.host, true);
    place->under_way.push_back(Usurpation{*senior, place->displaced, d.grain(*senior).lease, displaced_lease});
    d.host(in.host).usurping = std::move(place->under_way);
    d.follow_up(Usurp{in.host});
}

void staged(Draft &d, const GrainKey &key, HostId id) {
    const Host &host = *d.state.host(id);
    const std::size_t there = on_slots(d.state, id);
    for (const Usurpation &u : usurpations(d.state, id)) {
        if (u.by != key) continue;
        // Another grain may have ended in the meantime: then its slot does as well.
        if (there <= static_cast<std::size_t>(std::max(0, host.config->slots))) return;
        const std::string older = "session " + to_text(key.session) + " is older";
        d.withdraw(id, u.displaced, u.displaced_lease, false, older);
        return d.event("grain " + to_text(u.displaced) + " is displaced on " + host.config->name + " by " +
                       to_text(key));
    }
}

bool is_displaced(const State &state, const GrainKey &key, HostId id) {
    const std::vector<Usurpation> &list = state.host(id)->usurping;
    const Grain *g = state.grain(key);
    return g && std::any_of(list.begin(), list.end(),
                            [&](const Usurpation &u) { return u.displaced == key && u.displaced_lease == g->lease; });
}

}  // namespace dcs::core
