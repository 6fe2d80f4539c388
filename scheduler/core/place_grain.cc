// Which grain may run where (S3), and its lease.
#include <algorithm>
#include <bit>

#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

// With so many grains held back at one moment the trouble is the host's: it gets nothing for a
// while.
constexpr std::size_t held_back_max = 16;

bool permits(const HostConfig &config, const std::string &user) {
    const auto &users = config.users;
    return users.empty() || std::find(users.begin(), users.end(), user) != users.end();
}

bool class_fits(std::uint32_t mask, std::uint32_t host_class) {
    return mask == 0 || (mask & host_class) != 0;
}

bool is_nogo(const Grain &grain, HostId id) {
    const std::vector<HostId> &nogo = grain.nogo;
    return std::find(nogo.begin(), nogo.end(), id) != nogo.end();
}

std::size_t held_back_now(const Host &host, Instant now) {
    std::size_t n = 0;
    for (const HeldBack &h : host.held_back) n += h.until > now;
    return n;
}

// First the host where it failed once (S6), then by the lowest common class bit.
int rank_of(const Grain &grain, const Host &host, HostId id) {
    if (grain.failures_there > 0 && grain.failed_on == id) return -1;
    const std::uint32_t mask = grain.host_class == 0 ? ~std::uint32_t{0} : grain.host_class;
    return std::countr_zero(mask & host.config.host_class);
}

std::optional<std::pair<std::int64_t, GrainNumber>>
first_of_class(const State &state, Instant now, HostId id, const SessionKey &key,
               const std::map<std::int64_t, GrainNumber> &queue, std::int64_t before) {
    const Session &session = *state.session(key);
    for (const auto &[position, number] : queue) {
        if (position >= before) return {};
        if (would_take(state, now, id, GrainKey{key, number}, session.grains.at(number)))
            return std::pair{position, number};
    }
    return {};
}

}  // namespace

bool could_run(const Host &host, HostId id, const SessionKey &session, const Grain &grain) {
    return host.configured && host.config.slots > 0 &&
           class_fits(grain.host_class, host.config.host_class) &&
           permits(host.config, session.user) && !is_nogo(grain, id);
}

bool would_take(const State &state, Instant now, HostId id, const GrainKey &key,
                const Grain &grain) {
    const Host &host = state.hosts[static_cast<std::size_t>(id)];
    if (!could_run(host, id, key.session, grain)) return false;
    // half megabytes
    if (grain.thrash > 0 && host.free_memory_kb < std::int64_t{grain.thrash} * 512) return false;
    for (const HeldBack &h : host.held_back)
        if (h.key == key && h.until > now) return false;
    return true;
}

std::optional<GrainKey> first_for_host(const State &state, Instant now, HostId id) {
    const Host &host = state.hosts[static_cast<std::size_t>(id)];
    if (held_back_now(host, now) >= held_back_max) return {};
    for (const auto &[seniority, key] : state.waiting) {
        if (!permits(host.config, key.user)) continue;
        std::int64_t best = INT64_MAX;
        GrainNumber chosen = -1;
        for (const auto &[mask, queue] : state.session(key)->ready) {
            if (!class_fits(mask, host.config.host_class)) continue;
            const auto found = first_of_class(state, now, id, key, queue, best);
            if (found) std::tie(best, chosen) = *found;
        }
        if (chosen >= 0) return GrainKey{key, chosen};
    }
    return {};
}

void launch(Draft &d, const GrainKey &key, HostId id) {
    Grain &g = d.grain(key);
    DCS_REQUIRE(g.status == GrainStatus::ready, "only a ready grain is launched");
    g.past = total_usage(g);
    g.current = wire::Usage();
    g.status = GrainStatus::running;
    g.queue_position = 0;
    g.host = id;
    g.launched = false;
    g.last_contact = d.now;
    const Host &host = *d.state.host(id);
    if (host.fence > g.incarnation) {
        g.skipped += host.fence - g.incarnation;
        g.incarnation = host.fence;
    }
    g.incarnation += 1;
    d.host(id).totals.launched += 1;
    if (g.thrash > 0 && host.free_memory_kb >= 0)
        d.host(id).free_memory_kb -= std::int64_t{g.thrash} * 512;
    wire::Launch head;
    head.key = wire::wire_of(key);
    head.incarnation = g.incarnation;
    head.checkpoint_length = g.checkpoint_length;
    head.input_base = g.input_position;
    head.next_seq = g.sequence + 1;
    head.notice = g.notice;
    d.effect(SendLaunch{host.conn, key, head});
    d.event("grain " + to_text(key) + " started on " + host.config.name + ", incarnation " +
            std::to_string(g.incarnation));
}

void place_grain(Draft &d, const PlaceGrain &in) {
    const Grain *grain = d.state.grain(in.key);
    if (!grain || grain->status != GrainStatus::ready) return;
    if (d.state.session(in.key.session)->info.status != SessionStatus::active) return;
    std::vector<std::pair<int, HostId>> candidates;
    for (const HostId id : d.state.open_hosts)
        if (would_take(d.state, d.now, id, in.key, *grain))
            candidates.emplace_back(rank_of(*grain, *d.state.host(id), id), id);
    std::sort(candidates.begin(), candidates.end());
    for (const auto &[rank, id] : candidates) {
        // Whoever comes first for this slot gets it, be it this grain or an older one.
        const std::optional<GrainKey> first = first_for_host(d.state, d.now, id);
        if (first == in.key) return launch(d, in.key, id);
        if (first) d.follow_up(FillHost{id});
    }
}

namespace {
bool some_host_could_run_one(const State &state, const SessionKey &key) {
    const Session &session = *state.session(key);
    for (const auto &[mask, queue] : session.ready) {
        std::vector<HostId> suited;
        for (std::size_t i = 0; i < state.hosts.size(); ++i) {
            const Host &host = state.hosts[i];
            if (host.configured && host.config.slots > 0 &&
                class_fits(mask, host.config.host_class) && permits(host.config, key.user))
                suited.push_back(static_cast<HostId>(i));
        }
        if (suited.empty()) continue;
        for (const auto &[position, number] : queue) {
            const Grain &g = session.grains.at(number);
            for (const HostId id : suited)
                if (!is_nogo(g, id)) return true;
        }
    }
    return false;
}

GrainNumber first_ready(const Session &session) {
    const auto *first = &*session.ready.begin()->second.begin();
    for (const auto &[mask, queue] : session.ready)
        if (queue.begin()->first < first->first) first = &*queue.begin();
    return first->second;
}
}  // namespace

std::string why_none_can_run(const State &state, const SessionKey &key) {
    const Session &session = *state.session(key);
    if (session.ready.empty() || some_host_could_run_one(state, key)) return {};
    const GrainNumber first = first_ready(session);
    const Grain &g = session.grains.at(first);
    int configured = 0, other_class = 0, other_users = 0, nogo = 0, no_slots = 0;
    for (std::size_t i = 0; i < state.hosts.size(); ++i) {
        const Host &host = state.hosts[i];
        if (!host.configured) continue;
        ++configured;
        if (!class_fits(g.host_class, host.config.host_class))
            ++other_class;
        else if (!permits(host.config, key.user))
            ++other_users;
        else if (host.config.slots <= 0)
            ++no_slots;
        else
            ++nogo;
    }
    const auto part = [](int n, const std::string &what) {
        return n == 0 ? std::string() : ", " + std::to_string(n) + " " + what;
    };
    return "no host can run what remains of session " + to_text(key) + "; for grain " +
           std::to_string(first) + ": " + std::to_string(configured) + " hosts configured" +
           part(other_class, "of another class") + part(other_users, "not for " + key.user) +
           part(no_slots, "without slots") +
           part(nogo, "nogo (its program is missing there, or it failed there repeatedly)");
}

}  // namespace dcs::core
