// Grains that wait and that no host can take, for `dcs doctor`. Other decisions look at no more than one of a queue.
#include "scheduler/core/stuck.h"

#include <algorithm>

#include "scheduler/core/explain.h"
#include "scheduler/core/placement.h"

namespace dcs::core {
namespace {

// Grains and hosts that are looked at, by doctor for all sessions together; beyond that their number is a least one. A
// row is asked for every few seconds.
constexpr std::int64_t looked_at_by_doctor = 50'000, looked_at_for_row = 2000;

struct Stuck {
    std::int64_t grains = 0, looked_at = 0;
    bool all = true;
    GrainQueue::Place first{};
};

bool has_host(const State &state, const GrainKey &key, const Grain &g, std::int64_t &looked_at) {
    for (std::size_t i = 0; i < state.hosts.size(); ++i, ++looked_at)
        if (state.hosts[i].configured && could_run(state, static_cast<HostId>(i), key.session, g)) return true;
    return false;
}

Stuck stuck_in(const State &state, const SessionKey &key, std::int64_t most) {
    const Session &session = *state.session(key);
    Stuck stuck;
    for (const auto &[shape, queue] : session.ready) {
        std::map<std::int32_t, bool> known;  // by memory: all else that counts is the shape's, or the grain's nogo
        for (const GrainQueue::Place &place : queue.grains) {
            if (++stuck.looked_at > most) {
                stuck.all = false;
                return stuck;
            }
            const Grain &g = session.grains.at(place.grain);
            const bool alike = g.course->nogo->empty();
            const auto found = alike ? known.find(g.demands->memory_mb) : known.end();
            const bool fits =
                found != known.end() ? found->second : has_host(state, {key, place.grain}, g, stuck.looked_at);
            if (alike) known.emplace(g.demands->memory_mb, fits);
            if (fits) continue;
            if (stuck.grains++ == 0 || place.position < stuck.first.position) stuck.first = place;
        }
    }
    return stuck;
}

void add_hint(std::string &hints, const std::string &hint) {
    if (!hint.empty() && hints.find(hint) == std::string::npos) hints += (hints.empty() ? "" : "; ") + hint;
}

wire::ProblemRow problem_of(const State &state, Instant now, const Caller &caller, const SessionKey &key,
                            const Stuck &stuck) {
    const std::string name = key.user == caller.user ? std::to_string(key.number) : to_text(key);
    const std::string grain = name + ":" + std::to_string(stuck.first.grain);
    std::string hosts, hints;
    for (const wire::WhyRow &why : explanation(state, now, {key, stuck.first.grain}).reasons) {
        if (why.hosts == 0) continue;
        hosts += (hosts.empty() ? "" : ", ") + std::to_string(why.hosts) + (why.hosts == 1 ? " host: " : " hosts: ") +
                 why.text;
        add_hint(hints, why.hint);
    }
    add_hint(hints, "dcs session close " + name + " ends the session");
    wire::ProblemRow row;
    row.entity = "session " + to_text(key);
    row.problem = (stuck.all ? "" : "at least ") + std::to_string(stuck.grains) +
                  (stuck.grains == 1 ? " grain waits" : " grains wait") + ", and no host can take " +
                  (stuck.grains == 1 ? "it" : "them") + ": " + hosts;
    row.affects = (stuck.grains == 1 ? "grain " + grain + ", which does" : "grain " + grain + " and others, which do") +
                  " not start; dcs grain explain " + grain + " says more";
    row.advice = hints;
    return row;
}

}  // namespace

std::int32_t stuck_for_row(const State &state, const SessionKey &key) {
    if (state.session(key)->info.status != SessionStatus::active) return 0;
    return static_cast<std::int32_t>(stuck_in(state, key, looked_at_for_row).grains);
}

void add_stuck(Draft &d, const Caller &caller, std::size_t most, std::vector<wire::ProblemRow> &rows) {
    const auto configured = [](const Host &host) { return host.configured; };
    if (std::none_of(d.state.hosts.begin(), d.state.hosts.end(), configured)) return;  // one row says it for all
    std::int64_t left = looked_at_by_doctor;
    for (const auto &[seniority, key] : d.state.by_seniority) {
        if (rows.size() >= most || left <= 0) break;
        if (!caller.privileged && caller.user != key.user) continue;
        const Stuck stuck = stuck_in(d.state, key, left);
        left -= stuck.looked_at;
        if (stuck.grains > 0) rows.push_back(problem_of(d.state, d.now, caller, key, stuck));
    }
    d.looked_at(static_cast<std::size_t>(looked_at_by_doctor - left));
}

}  // namespace dcs::core
