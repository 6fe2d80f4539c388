// Queues, counts, lists: see derived.h.
#include "scheduler/state/derived.h"

#include "base/require.h"
#include "scheduler/state/decision.h"

namespace dcs::core {
namespace {

// One of the values under a key, in or out; a key without values is not there.
template <class Sets, class Key, class Value> void put_into(Sets &sets, const Key &key, const Value &value, bool in) {
    if (in) {
        sets[key].insert(value);
        return;
    }
    const auto there = sets.find(key);
    if (there == sets.end()) return;
    there->second.erase(value);
    if (there->second.empty()) sets.erase(there);
}

// Whether this session is among those that wait with grains of this shape.
void put_waiting(State &state, const SessionKey &key, std::uint64_t seniority, const Shape &shape, bool waits) {
    if (waits) {
        const auto [of_user, fresh] = state.waiting[shape].try_emplace(key.user);
        of_user->second.insert_or_assign(seniority, key);
        if (fresh) state.users[key.user].shapes += 1;
        return;
    }
    const auto of_shape = state.waiting.find(shape);
    if (of_shape == state.waiting.end()) return;
    const auto of_user = of_shape->second.find(key.user);
    if (of_user == of_shape->second.end()) return;
    of_user->second.erase(seniority);
    if (of_user->second.empty()) {
        of_shape->second.erase(of_user);
        UserCounts &user = state.users[key.user];
        user.shapes -= 1;
        DCS_REQUIRE(user.shapes >= 0, "no count is below nothing");
    }
    if (of_shape->second.empty()) state.waiting.erase(of_shape);
}

void queue_grain(State &state, Session &session, const GrainKey &key, const Grain &g, bool in) {
    const Shape shape = shape_of(g);
    const bool active = session.info.status == SessionStatus::active;
    if (!in) {
        const auto of_shape = session.ready.find(shape);
        DCS_REQUIRE(of_shape != session.ready.end(), "a ready grain is in the queue of its shape");
        of_shape->second.grains.erase({g.as<Ready>().queue_position, key.grain}, need_of(g));
        const auto program = of_shape->second.programs.find(g.program);
        DCS_REQUIRE(program != of_shape->second.programs.end(), "a queue counts its programs");
        if (--program->second == 0) of_shape->second.programs.erase(program);
        if (!of_shape->second.grains.empty()) return;
        session.ready.erase(of_shape);
        if (active) put_waiting(state, key.session, session.info.seniority, shape, false);
        return;
    }
    ReadyQueue &queue = session.ready[shape];
    if (queue.grains.empty() && active) put_waiting(state, key.session, session.info.seniority, shape, true);
    queue.programs[g.program] += 1;
    queue.grains.insert({g.as<Ready>().queue_position, key.grain}, need_of(g));
}

}  // namespace

// Grains that rest, or that people should hear of.
static void note_return(State &state, const GrainKey &key, const Grain &g, bool in) {
    const bool rests = g.status() == GrainStatus::ready && g.recent->rest_until != Instant{};
    if (in && rests) state.resting.emplace(g.recent->rest_until, key);
    if (!in && rests) state.resting.erase({g.recent->rest_until, key});
    if (in && circles(g)) state.circling.insert(key);
    if (!in && circles(g)) state.circling.erase(key);
}

void note_returns(State &state, const SessionKey &key, const Session &session, bool in) {
    if (!in) {
        const auto of_session = [&](const GrainKey &grain) { return grain.session == key; };
        std::erase_if(state.resting, [&](const auto &r) { return of_session(r.second); });
        std::erase_if(state.circling, of_session);
        return;
    }
    for (const auto &[number, g] : session.grains) note_return(state, GrainKey{key, number}, g, true);
}

// What an active session counts for outside of itself, in or out.
void count_session(State &state, const SessionKey &key, const Session &session, bool in) {
    if (session.info.status != SessionStatus::active) return;
    if (in) state.by_seniority.emplace(session.info.seniority, key);
    else state.by_seniority.erase(session.info.seniority);
    for (const auto &[shape, queue] : session.ready) put_waiting(state, key, session.info.seniority, shape, in);
    const std::int64_t running = session.counts[static_cast<int>(GrainStatus::running)];
    const std::int64_t ready = session.counts[static_cast<int>(GrainStatus::ready)];
    UserCounts &user = state.users[key.user];
    const int sign = in ? 1 : -1;
    user.sessions += sign;
    user.unfinished += sign * (running + ready);
    user.running += sign * running;
    DCS_REQUIRE(user.sessions >= 0 && user.unfinished >= 0 && user.running >= 0, "no count is below nothing");
    if (user == UserCounts()) state.users.erase(key.user);
}

void refresh_unpacked(State &state, const SessionKey &key, const Session &session) {
    if (session.info.status == SessionStatus::terminated && !session.packable.empty()) state.unpacked.insert(key);
    else state.unpacked.erase(key);
}

std::uint64_t stored_by(const Grain &g) {
    if (!g.own_tree) return 0;
    return on_disk(1) + on_disk(g.params_own_file ? g.params_length : 0) + on_disk(g.course->checkpoint_length) +
           on_disk(g.course->other_checkpoint) + on_disk(g.course->message_length) + on_disk(g.course->out_length) +
           on_disk(g.course->err_length);
}

std::uint64_t stored_by(const SessionInfo &info) {
    return on_disk(1) + on_disk(info.inputs_length) + on_disk(info.results_length) + on_disk(info.grains_length) +
           on_disk(info.events_length);
}

void count_stored(State &state, const SessionKey &key, std::uint64_t bytes, bool in) {
    const auto more = static_cast<std::int64_t>(bytes);
    state.stored.add_session(key.user, in ? more : -more);
}

void count_files(State &state, const std::string &user, const Grain &g, bool in) {
    const auto count = [&](const std::string &digest) {
        state.stored.use(user, digest, in);
        std::int64_t &named = state.contents[digest];
        named += in ? 1 : -1;
        DCS_REQUIRE(named >= 0, "a content is named by no fewer than no grain");
        if (named == 0) state.contents.erase(digest);
    };
    for (const std::string &digest : g.files->digests) count(digest);
    for (const wire::GrainFile &file : g.files->outputs)
        if (!file.digest.empty()) count(file.digest);
}

void refresh_open(State &state, HostId id) {
    const std::uint32_t host_class = state.host(id)->config->host_class;
    put_into(state.open_hosts, host_class, id, state.free_slots(id) > 0);
}

void run_there(State &state, const GrainKey &key, const Grain &g, bool in) {
    const HostId id = g.runs_on();
    DCS_REQUIRE(state.host(id), "a running grain runs on a known host");
    const auto index = static_cast<std::size_t>(id);
    const bool changed = in ? state.running[index].insert(key).second : state.running[index].erase(key) == 1;
    DCS_REQUIRE(changed, "a grain runs once");
    if (g.ahead) {
        std::set<GrainKey> &ahead = state.ahead[index];
        if (in) ahead.insert(key);
        else ahead.erase(key);
        if (ahead.empty()) state.crowded.erase(id);
        else state.crowded.insert(id);
    }
    const Used used = used_by(g.demands);
    state.used[index].add(used, in ? 1 : -1);
    add_to(state.used_of_pool, used.resources, in ? 1 : -1);
    refresh_open(state, id);
}

// Takes the grain's share out of what is derived, or puts it in.
void count_grain(State &state, Session &session, const GrainKey &key, const Grain &g, bool in) {
    std::int32_t &count = session.counts[static_cast<int>(g.status())];
    count += in ? 1 : -1;
    DCS_REQUIRE(count >= 0, "no count is below nothing");
    if (g.ahead) session.ahead += in ? 1 : -1;
    if (g.has_failed()) session.failed += in ? 1 : -1;
    const auto saved = static_cast<std::uint64_t>(g.course->kept->saved);
    session.saved_us = in ? session.saved_us + saved : session.saved_us - saved;
    if (packable(g) && in) session.packable.insert(key.grain);
    else if (!session.packable.empty()) session.packable.erase(key.grain);
    const GrainStatus status = g.status();
    if (status == GrainStatus::ready) queue_grain(state, session, key, g, in);
    note_return(state, key, g, in);
    if (status == GrainStatus::finished)
        session.results.set(static_cast<std::size_t>(g.as<Finished>().result_index), in ? key.grain : -1);
    if (status == GrainStatus::running) run_there(state, key, g, in);
    if (g.files.get() != GrainFiles()) {
        session.with_files += in ? 1 : -1;
        count_files(state, key.session.user, g, in);
    }
    if (g.own_tree) {
        const std::uint64_t bytes = stored_by(g);
        session.own_trees = in ? session.own_trees + bytes : session.own_trees - bytes;
        count_stored(state, key.session, bytes, in);
    }
    if (g.is_over() || session.info.status != SessionStatus::active) return;
    UserCounts &user = state.users[key.session.user];  // the session itself keeps it from being empty
    user.unfinished += in ? 1 : -1;
    if (status == GrainStatus::running) user.running += in ? 1 : -1;
}

// Which connections have calls of this session parked, in or out.
void note_waiters(State &state, const SessionKey &key, const std::vector<Waiter> &waiters, bool in) {
    if (!waiters.empty()) {
        std::int64_t &parked = state.parked[key.user];
        parked += (in ? 1 : -1) * static_cast<std::int64_t>(waiters.size());
        DCS_REQUIRE(parked >= 0, "no count is below nothing");
        if (parked == 0) state.parked.erase(key.user);
    }
    for (const Waiter &w : waiters) { put_into(state.waiting_conns, w.conn, key, in); }
}

// What is derived from a host, in or out.
void index_host(State &state, HostId id, const Host &host, bool in) {
    const Instant deadline = deadline_of(host);
    const Instant lapse = lapse_of(host);
    for (const auto &[program, until] : host.missing) put_into(state.lacking, program, id, in);
    if (in) {
        if (deadline != Instant::never()) state.deadlines.emplace(deadline, id);
        if (lapse != Instant::never()) state.lapses.emplace(lapse, id);
        if (host.conn != no_connection) state.host_of_conn[host.conn] = id;
        return;
    }
    state.deadlines.erase({deadline, id});
    state.lapses.erase({lapse, id});
    const auto by_conn = state.host_of_conn.find(host.conn);
    if (by_conn != state.host_of_conn.end() && by_conn->second == id) state.host_of_conn.erase(by_conn);
    put_into(state.open_hosts, host.config->host_class, id, false);
}

}  // namespace dcs::core
