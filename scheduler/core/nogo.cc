// Why a grain must not be tried on a host, as far as it is remembered: its latest moves tell.
#include <algorithm>

#include "scheduler/core/placement.h"

namespace dcs::core {

bool is_nogo(const Grain &grain, HostId id) {
    const std::vector<HostId> &nogo = grain.course->nogo;
    return std::find(nogo.begin(), nogo.end(), id) != nogo.end();
}

Why why_nogo(const Grain &grain, HostId id) {
    Why why = Why::nogo;
    bool over_limit = false;  // of some host; those whose limit is no higher have no move of their own
    for (const Move &m : grain.course->moves.get()) {
        over_limit = over_limit || m.reason == MoveReason::host_limit;
        if (m.host != id) continue;
        if (m.reason == MoveReason::host_limit) why = Why::host_limit;
        if (m.reason == MoveReason::no_program) why = Why::no_program;
        if (m.reason == MoveReason::cannot_start) why = Why::cannot_start;
        if (m.reason == MoveReason::failed) why = Why::failed_there;
    }
    return why == Why::nogo && over_limit ? Why::host_limit : why;
}

std::string exceeded_limit(const State &state, const Grain &grain) {
    const std::vector<Move> &moves = grain.course->moves.get();
    const auto last =
        std::find_if(moves.rbegin(), moves.rend(), [](const Move &m) { return m.reason == MoveReason::host_limit; });
    const Host *host = last == moves.rend() ? nullptr : state.host(last->host);
    return host ? "on " + host->config->name + " " + last->detail : std::string();
}

std::vector<std::pair<HostId, std::string>> failed_starts(const Grain &grain) {
    std::vector<std::pair<HostId, std::string>> said;
    for (const Move &m : grain.course->moves.get()) {
        if (m.reason != MoveReason::no_program && m.reason != MoveReason::cannot_start) continue;
        std::erase_if(said, [&](const auto &s) { return s.first == m.host; });
        said.emplace_back(m.host, m.detail);
    }
    return said;
}

namespace {
// By one resumption; the others when the session is resumed once more, or when they are submitted again.
constexpr std::size_t forgiven_at_once = 65536;

// Grains that only starts made avoid hosts may be tried everywhere again; of another one, where a start failed.
void forgive_starts(Draft &d, const GrainKey &key) {
    const Grain &old = *d.state.grain(key);
    if (old.course->nogo->empty()) return;
    std::vector<HostId> rest;
    for (const HostId id : old.course->nogo.get())
        if (const Why why = why_nogo(old, id);
            why == Why::failed_there || ((why == Why::nogo || why == Why::host_limit) && old.course->failures > 0))
            rest.push_back(id);
    if (rest.size() != old.course->nogo->size()) d.grain(key).course.edit().nogo = std::move(rest);
}
}  // namespace

// Nothing else happens when a call is repeated: what was in the grain's way may have been put right, and its control
// program was run again for that reason.
void try_again(Draft &d, const GrainKey &key) {
    const Grain &grain = *d.state.grain(key);
    const bool active = d.state.session(key.session)->info.status == SessionStatus::active;
    if (grain.status() != GrainStatus::ready || !active) return;
    if (grain.course->nogo->empty() && d.state.lacking.count({key.session.user, grain.program}) == 0) return;
    forgive_starts(d, key);
    forgive_program(d, {key.session.user, grain.program});
    d.follow_up(PlaceGrain{key});
}

// The same of all its grains, for control programs that look what is there already and do not repeat it.
void try_all_again(Draft &d, const SessionKey &key) {
    const Session &session = *d.state.session(key);
    std::set<std::uint32_t> programs;
    std::size_t forgiven = 0;
    for (const auto &[shape, queue] : session.ready) {
        for (const auto &[program, count] : queue.programs) programs.insert(program);
        d.looked_at(queue.grains.size());
        for (const auto &[position, number] : queue.grains) {
            if (session.grains.at(number).course->nogo->empty()) continue;
            if (++forgiven > forgiven_at_once) break;
            forgive_starts(d, GrainKey{key, number});
        }
    }
    bool marked = false;
    for (const std::uint32_t program : programs) {
        marked = marked || d.state.lacking.count({key.user, program}) != 0;
        forgive_program(d, {key.user, program});
    }
    if (forgiven == 0 && !marked) return;
    for (const auto &[host_class, hosts] : d.state.open_hosts)
        for (const HostId id : hosts) d.follow_up(FillHost{id});
}

void forgive_program(Draft &d, const ProgramOf &program) {
    const auto marked = d.state.lacking.find(program);
    if (marked == d.state.lacking.end()) return;
    for (const HostId id : marked->second) d.host(id).missing.erase(program);
}

}  // namespace dcs::core
