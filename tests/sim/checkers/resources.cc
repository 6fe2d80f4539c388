#include "sim/checkers/resources.h"

#include <algorithm>

namespace dcs::sim {
namespace {

std::int64_t of(const Amounts &amounts, const std::string &name) {
    const auto found = amounts.find(name);
    return found == amounts.end() ? 0 : found->second;
}

std::int64_t offer(const core::Host &host, const std::string &name) {
    const auto found = host.config->resources.find(name);
    return found == host.config->resources.end() ? 0 : found->second.amount;
}

// Nothing but resources is against it, as far as the host and its marks tell.
bool suits(const core::State &state, std::size_t id, const GrainKey &key, const core::Grain &grain) {
    const core::Host &host = state.hosts[id];
    const std::vector<std::string> &users = host.config->users;
    const std::vector<core::HostId> &nogo = grain.course->nogo;
    const wire::Demands &demands = *grain.demands;
    const bool held = std::any_of(host.held_back.begin(), host.held_back.end(),
                                  [&](const core::HeldBack &h) { return h.key == key; });
    if (demands.host_class != 0 && (demands.host_class & host.config->host_class) == 0) return false;
    const Amounts asks = *amounts_of(demands.resources);
    for (const auto &[name, amount] : asks)
        if (amount > (state.policy.resources.count(name) != 0 ? of(state.policy.resources, name) : offer(host, name)))
            return false;
    return host.configured &&
           (users.empty() || std::find(users.begin(), users.end(), key.session.user) != users.end()) &&
           std::find(nogo.begin(), nogo.end(), static_cast<core::HostId>(id)) == nogo.end() && demands.thrash == 0 &&
           demands.cores == 0 && demands.memory_mb == 0 && !held && host.held_back.size() < 16 &&
           host.missing.count(core::ProgramOf{key.session.user, grain.program}) == 0 &&
           grain.recent->rest_until == Instant{};
}

}  // namespace

void Resources::process_begins(int host, const Process &process, const std::map<server::GrainId, Process> &on_host) {
    const std::string name = server::to_text(process.id) + " on " + host_name(host);
    for (const auto &[resource, indices] : process.resources.indices) {
        if (indices.size() != static_cast<std::size_t>(of(process.resources.amounts, resource)))
            clock_.complain("resources", name + " does not get as many of " + resource + " as it demands");
        for (const auto &[id, other] : on_host) {
            const auto its = other.resources.indices.find(resource);
            if (other.number == process.number || its == other.resources.indices.end()) continue;
            for (const std::int32_t i : indices)
                if (std::count(its->second.begin(), its->second.end(), i) != 0)
                    clock_.complain("resources", name + " gets " + resource + " " + std::to_string(i) + ", which " +
                                                     server::to_text(id) + " has");
        }
    }
    if (process.resources.amounts.count("gpu") != 0 && process.resources.indices.count("gpu") == 0)
        clock_.complain("resources", name + " gets no index of gpu");
}

void Resources::before_turn(const core::State &state) {
    waiting_.clear();
    places_.clear();
    if (!clock_.plan.resources) return;
    for (const auto &[seniority, key] : state.by_seniority)
        for (const auto &[shape, queue] : state.session(key)->ready) {
            if (shape.resources.empty()) continue;
            for (const auto &[position, number] : queue.grains) {
                const GrainKey grain{key, number};
                waiting_.push_back({seniority, position, grain, *amounts_of(shape.resources)});
                places_[grain] = {seniority, position, state.grain(grain)->incarnation};
            }
        }
}

void Resources::sends(ConnId conn, const wire::AnyMessage &message, const core::State &state) {
    const auto *launch = std::get_if<wire::Launch>(&message);
    if (!launch || launch->demands.resources.empty()) return;
    const GrainKey key = wire::key_of(launch->key);
    const Amounts asks = *amounts_of(launch->demands.resources);
    for (std::size_t id = 0; id < state.hosts.size(); ++id) {
        if (state.hosts[id].conn != conn) continue;
        if (!launch->tentative) more_than_there_is(key, asks, id, state);
        return overtakes(key, launch->incarnation, asks, id, state);
    }
}

// Displaced grains have theirs until they have left.
void Resources::more_than_there_is(const GrainKey &key, const Amounts &asks, std::size_t id, const core::State &state) {
    const core::Host &host = state.hosts[id];
    core::Used used = state.used[id];
    for (const core::Usurpation &u : host.usurping)
        if (const core::Grain *grain = state.grain(u.displaced);
            grain && grain->status() == core::GrainStatus::running && grain->runs_on() == static_cast<core::HostId>(id))
            used.add(core::used_by(grain->demands), -1);
    for (const auto &[name, amount] : asks) {
        const bool of_pool = state.policy.resources.count(name) != 0;
        const std::int64_t has = of_pool ? of(state.used_of_pool, name) : of(used.resources, name);
        const std::int64_t most = of_pool ? of(state.policy.resources, name) : offer(host, name);
        if (has > most)
            clock_.complain("resources", to_text(key) + " is started on " + host.config->name + ": now " +
                                             std::to_string(has) + " of " + std::to_string(most) + " " + name +
                                             " are in use");
    }
}

void Resources::overtakes(const GrainKey &key, Incarnation incarnation, const Amounts &asks, std::size_t id,
                          const core::State &state) {
    const auto place = places_.find(key);
    const core::Session *session = state.session(key.session);
    if (!session || (place != places_.end() && incarnation > place->second.last + 1)) return;
    for (const Waiting &w : waiting_) {
        if (w.key == key) continue;
        if (place != places_.end()
                ? std::pair{w.seniority, w.position} > std::pair{place->second.seniority, place->second.position}
                : w.seniority >= session->info.seniority)
            continue;
        const auto shared =
            std::find_if(asks.begin(), asks.end(), [&](const auto &a) { return w.asks.count(a.first); });
        const core::Grain *grain = state.grain(w.key);
        if (shared == asks.end() || !grain || grain->status() != core::GrainStatus::ready) continue;
        if (state.session(w.key.session)->info.status != core::SessionStatus::active) continue;
        if (suits(state, id, w.key, *grain))
            return clock_.complain("resources", to_text(key) + " (" + resource_text(asks) + ") gets " + shared->first +
                                                    " on " + state.hosts[id].config->name + ", for which " +
                                                    to_text(w.key) + " (" + resource_text(w.asks) +
                                                    ") waits, which comes first; in use there " +
                                                    resource_text(state.used[id].resources) + ", in the pool " +
                                                    resource_text(state.used_of_pool));
    }
}

}  // namespace dcs::sim
