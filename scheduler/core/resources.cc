// Named resources: what hosts and the pool offer of them, and who has them.
//
// The scheduler counts; which indices a grain gets is decided where it starts, by those of processes that still run
// there (base/resources.h). So nothing about them has to survive a restart but the demands of the running grains.
#include <algorithm>

#include "base/planted.h"
#include "scheduler/core/placement.h"

namespace dcs::core {
namespace {

constexpr const char *gpu = "gpu";

std::int64_t amount_in(const Amounts &amounts, const std::string &name) {
    const auto found = amounts.find(name);
    return found == amounts.end() ? 0 : found->second;
}

}  // namespace

const Offer *offer_of(const Host &host, const std::string &name) {
    for (const Offers *offers : {&host.config->resources, &host.found.get()})
        if (const auto found = offers->find(name); found != offers->end()) return &found->second;
    return nullptr;
}

Offers all_offers(const Host &host) {
    Offers all = host.config->resources;
    all.insert(host.found->begin(), host.found->end());
    return all;
}

Offers indexed_offers(const Host &host, const std::string &resources) {
    Offers offers;
    const auto add = [&](const std::string &name) {
        if (const Offer *offer = offer_of(host, name); offer && !offer->indices.empty()) offers.emplace(name, *offer);
    };
    for (const auto &[name, amount] : asked(resources)) add(name);
    add(gpu);  // the host keeps those that are not the grain's from it
    return offers;
}

bool is_of_pool(const State &state, const std::string &name) { return state.policy.resources.count(name) != 0; }

std::int64_t offered(const State &state, HostId id, const std::string &name) {
    if (is_of_pool(state, name)) return amount_in(state.policy.resources, name);
    const Offer *offer = offer_of(*state.host(id), name);
    return offer == nullptr ? 0 : offer->amount;
}

bool resources_ever_fit(const State &state, HostId id, const std::string &resources) {
    return resources.empty() || resources_ever_fit(state, id, asked(resources));
}

bool resources_ever_fit(const State &state, HostId id, const Amounts &asks) {
    const Host &host = *state.host(id);
    for (const auto &[name, amount] : asks) {
        const bool by_itself = name == gpu || name == container_resource;  // a pilot finds no others
        const bool may_be_found = !host.found_known && (by_itself || !host.config->pilot) && !is_of_pool(state, name) &&
                                  host.config->resources.count(name) == 0;
        if (!may_be_found && amount > offered(state, id, name)) return false;
    }
    return true;
}

bool pool_fits(const State &state, const Amounts &asks) {
    for (const auto &[name, amount] : asks)
        if (is_of_pool(state, name) &&
            amount_in(state.used_of_pool, name) + amount > amount_in(state.policy.resources, name))
            return false;
    return true;
}

bool resources_fit(const State &state, HostId id, const std::string &resources, const Vacancy &vacancy) {
    return resources.empty() || resources_fit(state, id, asked(resources), vacancy);
}

bool resources_fit(const State &state, HostId id, const Amounts &asks, const Vacancy &vacancy) {
    if (planted("core.resources_without_end")) return true;
    if (!pool_fits(state, asks)) return false;
    const Amounts &used = state.used[static_cast<std::size_t>(id)].resources;
    for (const auto &[name, amount] : asks)
        if (!is_of_pool(state, name) &&
            amount_in(used, name) - amount_in(vacancy.freed.resources, name) + amount > offered(state, id, name))
            return false;
    return true;
}

bool KeptFor::touches(const Amounts &asks) const {
    return std::any_of(asks.begin(), asks.end(), [&](const auto &ask) { return names.count(ask.first) != 0; });
}

void KeptFor::keep(const Amounts &asks) {
    if (planted("core.resources_not_kept")) return;
    for (const auto &[name, amount] : asks) names.insert(name);
}

std::optional<GrainKey> first_for_pool(const State &state, Instant now) {
    if (state.policy.resources.empty()) return {};
    std::optional<GrainKey> first;
    std::pair<std::uint64_t, std::int64_t> best{UINT64_MAX, 0};
    for (const auto &[shape, users] : state.waiting) {
        const Amounts asks = asked(shape.resources);
        const auto of_pool = [&](const auto &ask) { return is_of_pool(state, ask.first); };
        if (!std::any_of(asks.begin(), asks.end(), of_pool) || !pool_fits(state, asks)) continue;
        for (const auto &[user, sessions] : users) {
            if (may_start_none(state, user) || sessions.begin()->first > best.first) continue;
            const auto &[seniority, key] = *sessions.begin();
            const Session &session = *state.session(key);
            const auto &[position, number] = session.ready.at(shape).grains.front();
            if (std::pair{seniority, position} >= best || rests(session.grains.at(number), now)) continue;
            best = {seniority, position};
            first = GrainKey{key, number};
        }
    }
    return first;
}

namespace {

// Grains that have some of it, on one host or (no_host) on all.
std::string holders(const State &state, HostId id, const std::string &name) {
    constexpr int most = 4;
    std::string text;
    int told = 0;
    for (std::size_t i = 0; i < state.running.size(); ++i) {
        if (id != no_host && static_cast<HostId>(i) != id) continue;
        for (const GrainKey &key : state.running[i]) {
            if (amount_in(asked(state.grain(key)->demands->resources), name) == 0) continue;
            if (++told > most) return text + ", ...";
            text += (text.empty() ? "" : ", ") + to_text(key);
        }
    }
    return text;
}

std::string in_use(const std::string &name, std::int64_t used, std::int64_t most, std::int64_t amount,
                   const std::string &whose, const std::string &where) {
    const std::string all = std::to_string(most), by = whose.empty() ? "" : " by " + whose;
    if (used >= most) return "all " + all + " of " + name + where + " are in use" + by;
    return std::to_string(used) + " of " + all + " " + name + where + " are in use" + by + ", and it demands " +
           std::to_string(amount);
}

// What a host must have to offer it.
std::string needs(const std::string &name) {
    return name == container_resource ? ", which needs podman, user namespaces and --run-as self there" : "";
}

}  // namespace

std::string resources_in_words(const State &state, const Grain &grain, std::optional<HostId> busy) {
    std::string text;
    const auto say = [&text](const std::string &words) { text += "; " + words; };
    for (const auto &[name, amount] : asked(grain.demands->resources)) {
        std::int64_t most = 0;
        for (std::size_t i = 0; i < state.hosts.size(); ++i)
            if (state.hosts[i].configured) most = std::max(most, offered(state, static_cast<HostId>(i), name));
        if (amount > most && most == 0) {
            say(is_of_pool(state, name) ? "the pool has no " + name : "no host offers " + name + needs(name));
        } else if (amount > most) {
            say(is_of_pool(state, name) ? "the pool has " + std::to_string(most) + " of " + name
                                        : "no host offers more than " + std::to_string(most) + " of " + name);
        } else if (is_of_pool(state, name)) {
            const std::int64_t used = amount_in(state.used_of_pool, name);
            if (used + amount > most) say(in_use(name, used, most, amount, holders(state, no_host, name), ""));
        } else if (busy) {
            const std::int64_t used = amount_in(state.used[static_cast<std::size_t>(*busy)].resources, name);
            if (const std::int64_t there = offered(state, *busy, name); used + amount > there)
                say(in_use(name, used, there, amount, holders(state, *busy, name), " on " + state.host_name(*busy)));
        }
    }
    return text;
}

}  // namespace dcs::core
