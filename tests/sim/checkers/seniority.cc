#include "sim/checkers/seniority.h"

#include <algorithm>

namespace dcs::sim {
namespace {
constexpr std::size_t looked_at = 4;  // of each queue
constexpr std::uint64_t sample = 4;   // turns
}  // namespace

bool Seniority::suits(const core::State &state, std::size_t id, const SessionKey &key, const core::Grain &grain) {
    const core::Host &host = state.hosts[id];
    const std::vector<std::string> &users = host.config->users;
    const std::vector<core::HostId> &nogo = grain.course->nogo;
    const bool held = std::any_of(host.held_back.begin(), host.held_back.end(),
                                  [&](const core::HeldBack &h) { return h.key.session == key; });
    const wire::Demands &demands = *grain.demands;
    return host.configured && (demands.host_class == 0 || (demands.host_class & host.config->host_class) != 0) &&
           (users.empty() || std::find(users.begin(), users.end(), key.user) != users.end()) &&
           std::find(nogo.begin(), nogo.end(), static_cast<core::HostId>(id)) == nogo.end() && demands.thrash == 0 &&
           demands.cores == 0 && demands.memory_mb == 0 && demands.wall_s == 0 && demands.resources.empty() && !held &&
           host.held_back.size() < 16 && host.missing.count(core::ProgramOf{key.user, grain.program}) == 0 &&
           grain.recent->rest_until == Instant{};
}

void Seniority::before_turn(const core::State &state) {
    waiting_.clear();
    if (++turns_ % sample != 0) return;
    for (const auto &[seniority, key] : state.by_seniority)
        for (const auto &[shape, queue] : state.session(key)->ready) {
            std::size_t n = 0;
            for (const auto &[position, number] : queue.grains) {
                if (++n > looked_at) break;
                waiting_.push_back({seniority, GrainKey{key, number}});
            }
        }
}

void Seniority::sends(ConnId conn, const wire::AnyMessage &message, const core::State &state) {
    const auto *launch = std::get_if<wire::Launch>(&message);
    if (!launch || waiting_.empty()) return;
    const GrainKey key = wire::key_of(launch->key);
    const core::Session *session = state.session(key.session);
    if (!session) return;
    for (std::size_t id = 0; id < state.hosts.size(); ++id) {
        if (state.hosts[id].conn != conn) continue;
        for (const Waiting &w : waiting_) {
            if (w.seniority >= session->info.seniority) continue;
            const core::Grain *grain = state.grain(w.key);
            if (!grain || grain->status() != core::GrainStatus::ready) continue;
            if (state.session(w.key.session)->info.status != core::SessionStatus::active) continue;
            if (suits(state, id, w.key.session, *grain))
                return clock_.complain("seniority", to_text(key) + " is started on " + state.hosts[id].config->name +
                                                        " while " + to_text(w.key) + " of an older session waits");
        }
        return;
    }
}

std::string Seniority::overlooked(const core::State &state, Instant) {
    for (const auto &[seniority, key] : state.by_seniority)
        for (const auto &[shape, queue] : state.session(key)->ready)
            for (const auto &[position, number] : queue.grains)
                for (std::size_t id = 0; id < state.hosts.size(); ++id) {
                    if (state.free_slots(static_cast<core::HostId>(id)) <= 0) continue;
                    const core::Grain &grain = state.session(key)->grains.at(number);
                    const bool cores = state.used[id].cores < state.hosts[id].config->slots;
                    if (cores && suits(state, id, key, grain))
                        return to_text(GrainKey{key, number}) + " waits while " + state.hosts[id].config->name +
                               " has a free slot";
                }
    return {};
}

}  // namespace dcs::sim
