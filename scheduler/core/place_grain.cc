// Which grain may run where, and its lease.
#include <algorithm>
#include <bit>

#include "base/planted.h"
#include "scheduler/core/ahead.h"
#include "scheduler/core/placement.h"

namespace dcs::core {
namespace {

// With so many grains of one user held back at one moment the trouble is not one grain's. It is counted by user, so
// that no user keeps a host from others.
constexpr std::ptrdiff_t held_back_max = 16;

// By the tables, whatever the host has free.
bool may_be_there(const Host &host, HostId id, const SessionKey &session, const Grain &grain) {
    return host.configured && host.config->slots > 0 &&
           class_fits(grain.demands->host_class, host.config->host_class) && permits(host.config, session.user) &&
           !is_nogo(grain, id) && binary_fits(host, grain.files->binary_classes) &&
           form_fits(host, wire::form_needed(grain.demands));
}

std::int64_t memory_need_kb(const Grain &g) {
    return std::max(std::int64_t{g.demands->thrash} * 512, std::int64_t{g.demands->memory_mb} * 1024);
}

// Grains of the shape wait for resources of this host, or for some of the pool: those behind them do not get these.
bool may_keep(const State &state, HostId id, const Shape &shape, const Vacancy &vacancy) {
    if (shape.resources.empty()) return false;
    const Amounts asks = asked(shape.resources);
    if (resources_fit(state, id, asks, vacancy)) return false;
    if (!pool_fits(state, asks)) return true;
    const Host &host = *state.host(id);
    return class_fits(shape.host_class, host.config->host_class) && resources_ever_fit(state, id, asks);
}

// Such a grain waits for nothing else. For resources of the pool it may wait on another host.
bool keeps(const State &state, Instant now, HostId id, const GrainKey &key, const Grain &grain) {
    if (rests(grain, now)) return false;
    const auto may_start = [&](HostId there) {
        const Host &host = *state.host(there);
        return could_run(state, there, key.session, grain) && state.takes_grains(there) &&
               !lacks_program(host, key.session.user, grain.program, now) && !held_back(host, key, now);
    };
    if (may_start(id)) return true;
    if (pool_fits(state, asked(grain.demands->resources))) return false;
    for (std::size_t other = 0; other < state.hosts.size(); ++other)
        if (may_start(static_cast<HostId>(other))) return true;
    return false;
}

// The first grain of a queue that would be taken, or that keeps resources from those behind it.
struct Candidate {
    std::int64_t position = 0;
    GrainNumber number = 0;
    bool fits = false;
    Amounts asks;
    bool operator<(const Candidate &other) const { return position < other.position; }
};

std::optional<Candidate> first_of_queue(const State &state, Instant now, HostId id, const SessionKey &key,
                                        const Shape &shape, const ReadyQueue &queue, const Vacancy &vacancy,
                                        std::int64_t before) {
    const bool fits = shape_fits(state, id, shape, vacancy);
    if (fits && lacks_program(*state.host(id), key.user, queue.program(), now)) return {};
    if (!fits && !may_keep(state, id, shape, vacancy)) return {};
    const Session &session = *state.session(key);
    // Where it does not fit, grains may wait for resources of the pool on any host.
    const bool anywhere = !fits && !pool_fits(state, asked(shape.resources));
    const auto suits = [&](const MemoryNeed &need) {
        if (fits) return memory_fits(state, id, need, vacancy);
        return memory_ever_fits(*state.host(id), need) ||
               (anywhere && std::any_of(state.hosts.begin(), state.hosts.end(),
                                        [&](const Host &host) { return memory_ever_fits(host, need); }));
    };
    const GrainQueue &grains = queue.grains;
    for (auto at = grains.fitting(grains.begin(), suits); at != grains.end(); at = grains.fitting(++at, suits)) {
        const auto [position, number] = *at;
        if (position >= before) return {};
        const Grain &grain = session.grains.at(number);
        const GrainKey here{key, number};
        if (fits ? would_take(state, now, id, here, grain, vacancy) : keeps(state, now, id, here, grain))
            return Candidate{position, number, fits, asked(shape.resources)};
    }
    return {};
}

// The grain of this session that comes first, whatever its shape.
std::optional<GrainNumber> first_of_session(const State &state, Instant now, HostId id, const SessionKey &key,
                                            const Vacancy &vacancy, KeptFor &kept) {
    std::int64_t best = INT64_MAX;  // of those that demand no resources
    std::vector<Candidate> candidates;
    for (const auto &[shape, queue] : state.session(key)->ready) {
        auto first = first_of_queue(state, now, id, key, shape, queue, vacancy, best);
        if (!first) continue;
        if (first->fits && first->asks.empty()) best = first->position;
        candidates.push_back(std::move(*first));
    }
    std::sort(candidates.begin(), candidates.end());
    for (const Candidate &c : candidates) {
        if (c.fits && !kept.touches(c.asks)) return c.number;
        if (!c.fits || !planted("core.held_keeps_nothing"))
            kept.keep(c.asks);  // all of them, so that it waits for each no longer than its turn
    }
    return {};
}

// The position of the search among one user's sessions with grains of one shape.
struct Cursor {
    std::map<std::uint64_t, SessionKey>::const_iterator at, end;
    std::int64_t share = 0;  // under fair share: what the user has already
    bool before(const Cursor &other) const {
        return std::tie(share, at->first) < std::tie(other.share, other.at->first);
    }
};

std::vector<Cursor> cursors_for(const State &state, Instant now, HostId id, const Vacancy &vacancy) {
    const Host &host = *state.host(id);
    std::vector<Cursor> cursors;
    for (const auto &[shape, users] : state.waiting) {
        const bool fits = shape_fits(state, id, shape, vacancy);
        if (!fits && !may_keep(state, id, shape, vacancy)) continue;
        const bool elsewhere = !fits && !pool_fits(state, asked(shape.resources));  // it may wait on other hosts
        for (const auto &[user, sessions] : users) {
            if (may_start_none(state, user)) continue;
            if (!elsewhere && (!permits(host.config, user) || in_trouble(host, user, now))) continue;
            const std::int64_t share = state.policy.fair_share ? state.users.at(user).running : 0;
            cursors.push_back({sessions.begin(), sessions.end(), share});
        }
    }
    return cursors;
}

}  // namespace

bool permits(const HostConfig &config, const std::string &user) {
    const auto &users = config.users;
    return users.empty() || std::find(users.begin(), users.end(), user) != users.end();
}

bool class_fits(std::uint32_t mask, std::uint32_t host_class) { return mask == 0 || (mask & host_class) != 0; }

bool binary_fits(const Host &host, const std::vector<std::string> &classes) {
    const std::string &own = binary_class_of(host);
    return classes.empty() || own.empty() || std::binary_search(classes.begin(), classes.end(), own);
}

bool form_fits(const Host &host, wire::Form needed) { return host.form >= needed || planted("core.any_form"); }

bool may_start_none(const State &state, const std::string &user) {
    if (is_denied(state, user)) return true;
    const std::int32_t most = state.policy.running_per_user;
    const auto counts = state.users.find(user);
    return most > 0 && counts != state.users.end() && counts->second.running >= most;
}

std::int32_t cores_of(const HostConfig &config) { return config.cores > 0 ? config.cores : config.slots; }

bool cores_fit(const State &state, HostId id, std::int32_t cores, const Vacancy &vacancy) {
    const std::int64_t used = state.used[static_cast<std::size_t>(id)].cores - vacancy.freed.cores;
    return used + std::max(1, cores) <= cores_of(state.host(id)->config);
}

bool limit_permits(const Host &host, const MemoryNeed &need) {
    return host.limits.memory_mb <= 0 || need.memory_mb <= host.limits.memory_mb;
}

bool memory_ever_fits(const Host &host, const MemoryNeed &need) {
    const std::int64_t most_kb =
        host.config->memory_mb > 0 ? std::int64_t{host.config->memory_mb} * 1024 : host.total_memory_kb;
    return limit_permits(host, need) && (most_kb == 0 || std::int64_t{need.memory_mb} * 1024 <= most_kb);
}

bool memory_fits(const State &state, HostId id, const MemoryNeed &need, const Vacancy &vacancy) {
    const Host &host = *state.host(id);
    if (need.thrash > 0 && host.free_memory_kb < std::int64_t{need.thrash} * 512) return false;
    if (need.memory_mb == 0) return true;
    if (!limit_permits(host, need)) return false;
    if (host.config->memory_mb == 0) return host.free_memory_kb >= std::int64_t{need.memory_mb} * 1024;
    const std::int64_t used = state.used[static_cast<std::size_t>(id)].memory_mb - vacancy.freed.memory_mb;
    return used + need.memory_mb <= host.config->memory_mb;
}

bool ever_fits(const Host &host, const Grain &grain) {
    return std::max(1, grain.demands->cores) <= cores_of(host.config) && memory_ever_fits(host, need_of(grain));
}

bool lacks_program(const Host &host, const std::string &user, std::uint32_t program, Instant now) {
    if (program == 0 || host.missing.empty()) return false;
    const auto it = host.missing.find(ProgramOf{user, program});
    return it != host.missing.end() && it->second > now;
}

bool shape_fits(const State &state, HostId id, const Shape &shape, const Vacancy &vacancy) {
    const Host &host = *state.host(id);
    if (!class_fits(shape.host_class, host.config->host_class)) return false;
    if (!binary_fits(host, shape.binary_classes) || !form_fits(host, shape.form)) return false;
    if (!cores_fit(state, id, shape.cores, vacancy) || !resources_fit(state, id, shape.resources, vacancy))
        return false;
    const auto at_least = [](std::uint8_t bits) { return bits == 0 ? 0 : std::int32_t{1} << (bits - 1); };
    return memory_fits(state, id, {at_least(shape.memory_bits), at_least(shape.thrash_bits)}, vacancy);
}

bool accepts_now(const State &state, HostId id) {
    const Host &host = *state.host(id);
    return !on_probation(state, host) || state.running[static_cast<std::size_t>(id)].empty();
}

bool on_probation(const State &state, const Host &host) {
    return state.policy.probation > 0 && host.blamed_lately >= state.policy.probation;
}

bool rests(const Grain &grain, Instant now) { return grain.recent->rest_until > now; }

bool in_trouble(const Host &host, const std::string &user, Instant now) {
    const auto counts = [&](const HeldBack &h) { return h.until > now && h.key.session.user == user; };
    return std::count_if(host.held_back.begin(), host.held_back.end(), counts) >= held_back_max;
}

bool held_back(const Host &host, const GrainKey &key, Instant now) {
    for (const HeldBack &h : host.held_back)
        if (h.key == key && h.until > now) return true;
    return false;
}

bool could_run(const State &state, HostId id, const SessionKey &session, const Grain &grain) {
    const Host &host = *state.host(id);
    return may_be_there(host, id, session, grain) && ever_fits(host, grain) &&
           resources_ever_fit(state, id, grain.demands->resources);
}

bool would_take(const State &state, Instant now, HostId id, const GrainKey &key, const Grain &grain,
                const Vacancy &vacancy) {
    const Host &host = *state.host(id);
    return may_be_there(host, id, key.session, grain) && !rests(grain, now) &&
           !lacks_program(host, key.session.user, grain.program, now) &&
           cores_fit(state, id, grain.demands->cores, vacancy) && memory_fits(state, id, need_of(grain), vacancy) &&
           resources_fit(state, id, grain.demands->resources, vacancy) && !held_back(host, key, now);
}

std::optional<GrainKey> first_for_host(const State &state, Instant now, HostId id, const Vacancy &vacancy,
                                       KeptFor *kept) {
    if (!accepts_now(state, id)) return {};
    KeptFor none;
    if (kept == nullptr) kept = &none;
    // A heap: a user may have tens of thousands of sessions and shapes waiting.
    std::vector<Cursor> cursors = cursors_for(state, now, id, vacancy);
    const auto after = [](const Cursor &a, const Cursor &b) {
        return planted("core.younger_first") ? a.before(b) : b.before(a);
    };
    std::make_heap(cursors.begin(), cursors.end(), after);
    while (!cursors.empty()) {
        const auto [seniority, key] = *cursors.front().at;
        if (seniority >= vacancy.senior_to) return {};
        if (const auto number = first_of_session(state, now, id, key, vacancy, *kept)) return GrainKey{key, *number};
        while (!cursors.empty() && cursors.front().at->first == seniority) {
            std::pop_heap(cursors.begin(), cursors.end(), after);
            if (++cursors.back().at == cursors.back().end) cursors.pop_back();
            else std::push_heap(cursors.begin(), cursors.end(), after);
        }
    }
    return {};
}

// It begins with what its newest checkpoint holds. That is saved, unless nothing ran since it was last counted.
void begin_at_checkpoint(Grain &g) {
    if (g.course->kept.get() == Kept()) return;
    Kept &kept = g.course.edit().kept.edit();
    if (cpu_us(g.course->current) > 0) kept.saved = saturated(kept.saved, kept.held);
    kept.before = kept.start;
    kept.start = kept.held;
}

void launch(Draft &d, const GrainKey &key, HostId id, bool tentative) {
    Grain &g = d.grain(key);
    DCS_REQUIRE(g.status() == GrainStatus::ready, "only a ready grain is launched");
    DCS_REQUIRE(d.state.host(id) && d.state.host(id)->conn != no_connection, "only a connected host is given grains");
    const bool ahead = !tentative && d.state.free_slots(id) == 0;
    DCS_REQUIRE(!ahead || may_lead(d.state, id), "a grain needs a free slot, or waits for one there");
    DCS_REQUIRE(could_run(d.state, id, key.session, g), "a grain is tried only where it may be");
    // The host whose lease might still be forgiven has it no more, unless it has run longer.
    Course &course = g.course.edit();
    course.old_lease = g.lessee == no_host ? OldLease{} : OldLease{g.lessee, g.lease};
    begin_at_checkpoint(g);
    course.past = total_usage(g);
    course.before = course.current;
    course.current = wire::Usage();
    g.become(Running{});
    g.ahead = ahead;
    g.lessee = id;
    const Host &host = *d.state.host(id);
    const Incarnation used =
        planted("core.old_leases_again") ? host.fence : std::max(host.fence, lease_floor(d.state, key.session));
    if (used > g.incarnation) {
        course.skipped += used - g.incarnation;
        g.incarnation = used;
    }
    g.incarnation += 1;
    g.lease = g.incarnation;
    DCS_REQUIRE(g.lease != course.old_lease.lease || course.old_lease.host == no_host,
                "a lease has a number of its own");
    d.host(id).totals.launched += 1;
    if (host.free_memory_kb >= 0)
        d.host(id).free_memory_kb = std::max<std::int64_t>(0, d.host(id).free_memory_kb - memory_need_kb(g));
    wire::Launch head;
    head.key = wire::wire_of(key);
    head.incarnation = g.incarnation;
    head.checkpoint_length = g.course->checkpoint_length;
    head.input_base = g.course->input_position;
    head.next_seq = g.course->sequence + 1;
    head.demands = g.demands.get();
    const auto &accounts = host.config->accounts;
    head.account = std::find(accounts.begin(), accounts.end(), key.session.user) != accounts.end();
    head.tentative = tentative;
    head.offers = resource_text(indexed_offers(host, g.demands->resources));
    d.effect(SendLaunch{host.conn, key, head});
    d.event("grain " + to_text(key) + (tentative ? " tried on " : " started on ") + host.config->name +
            ", incarnation " + std::to_string(g.incarnation));
}

namespace {

// Open hosts whose lowest common class bit is the same, by their number.
struct Rank {
    std::vector<std::pair<std::set<HostId>::const_iterator, std::set<HostId>::const_iterator>> classes;
    std::optional<HostId> next() {
        auto *lowest = static_cast<decltype(classes)::value_type *>(nullptr);
        for (auto &c : classes)
            if (c.first != c.second && (!lowest || *c.first < *lowest->first)) lowest = &c;
        if (!lowest) return {};
        return *lowest->first++;
    }
};

// True: the grain has its place, or one that comes first is considered before it.
bool try_host(Draft &d, const GrainKey &key, const Grain &grain, HostId id) {
    if (!would_take(d.state, d.now, id, key, grain, {})) return false;
    // The first grain in order gets this slot, be it this one or an older one.
    const std::optional<GrainKey> first = first_for_host(d.state, d.now, id, {});
    if (!first) return false;
    if (first == key) {
        launch(d, key, id, false);
        if (const auto next = first_for_pool(d.state, d.now)) d.follow_up(PlaceGrain{*next});
    } else {
        d.follow_up(FillHost{id});
        d.follow_up(PlaceGrain{key});
    }
    return true;
}

}  // namespace

void place_grain(Draft &d, const PlaceGrain &in) {
    const Grain *grain = d.state.grain(in.key);
    if (!grain || grain->status() != GrainStatus::ready) return;
    if (d.state.session(in.key.session)->info.status != SessionStatus::active) return;
    if (may_start_none(d.state, in.key.session.user)) return;
    // Where it failed once it is tried first, then by the lowest common class bit.
    const bool same_first = grain->recent->failures_there > 0 && d.state.free_slots(grain->recent->failed_on) > 0;
    if (same_first && try_host(d, in.key, *grain, grain->recent->failed_on)) return;
    const std::uint32_t mask = grain->demands->host_class == 0 ? ~std::uint32_t{0} : grain->demands->host_class;
    std::map<int, Rank> ranks;
    for (const auto &[host_class, hosts] : d.state.open_hosts)
        if ((mask & host_class) != 0)
            ranks[std::countr_zero(mask & host_class)].classes.emplace_back(hosts.begin(), hosts.end());
    for (auto &[bit, rank] : ranks)
        while (const std::optional<HostId> id = rank.next())
            if (try_host(d, in.key, *grain, *id)) return;
    recall_for_older(d, in.key, *grain);
}

}  // namespace dcs::core
