// Every cross reference recomputed from the entities and compared with what State keeps.
#include <algorithm>
#include <iterator>

#include "base/large_work.h"
#include "scheduler/state/derived.h"
#include "scheduler/state/decision.h"

namespace dcs::core {
namespace {

// What grains of one session add up to. Those of a large session are looked at in parts, on several threads.
struct Sums {
    std::string wrong;  // the first that is
    std::int32_t counts[4] = {0, 0, 0, 0}, with_files = 0, failed = 0;
    std::uint64_t saved = 0, own_trees = 0;
    std::vector<std::int64_t> positions;                              // of the ready grains
    std::map<Shape, std::map<std::uint32_t, std::int64_t>> programs;  // and how many are of which program
    std::map<std::string, std::int64_t> contents;
    std::set<std::pair<HostId, GrainKey>> running;
    std::set<std::pair<Instant, GrainKey>> resting;
    std::set<GrainKey> circling;

    void add(Sums &&part);
};

void Sums::add(Sums &&part) {
    if (wrong.empty()) wrong = std::move(part.wrong);
    for (std::size_t i = 0; i < std::size(counts); ++i) counts[i] += part.counts[i];
    with_files += part.with_files;
    failed += part.failed;
    saved += part.saved;
    own_trees += part.own_trees;
    positions.insert(positions.end(), part.positions.begin(), part.positions.end());
    for (const auto &[shape, of_shape] : part.programs)
        for (const auto &[program, count] : of_shape) programs[shape][program] += count;
    for (const auto &[digest, count] : part.contents) contents[digest] += count;
    running.merge(part.running);
    resting.merge(part.resting);
    circling.merge(part.circling);
}

// Looks at grains, one after the other.
struct GrainChecker {
    const State &state;
    const SessionKey &key;
    const Session &session;
    Sums sums{};
    // Of the grain before, which mostly has the same shape.
    Shape shape{};
    const ReadyQueue *queue = nullptr;
    std::map<std::uint32_t, std::int64_t> *programs = nullptr;

    void check(GrainNumber number, const Grain &g);
    void check_ready(GrainNumber number, const Grain &g);
    void add(GrainNumber number, const Grain &g);
};

struct Checker {
    const State &state;
    std::string wrong;
    std::vector<std::set<GrainKey>> running;
    std::map<std::string, std::int64_t> contents;
    std::set<std::pair<Instant, GrainKey>> resting;
    std::set<GrainKey> circling;

    void require(bool good, const std::string &what) {
        if (!good && wrong.empty()) wrong = what;
    }
    void check_queues(const std::string &name, const Session &session, Sums &sums);
    void check_session(const SessionKey &key, const Session &session, Sums sums);
    void check_hosts();
    void check_indexes();
    void check_stored();
};

void GrainChecker::check(GrainNumber number, const Grain &g) {
    const auto require = [&](bool good, const char *what) {
        if (!good && sums.wrong.empty()) sums.wrong = "grain " + to_text(GrainKey{key, number}) + ": " + what;
    };
    const auto known = [&](HostId id) { return state.host(id) != nullptr; };
    const char *const alone = wrong_record(session.info, g);
    require(!alone, alone);
    const std::vector<HostId> &nogo = g.course->nogo;
    if (g.status() == GrainStatus::running) {
        require(session.info.status == SessionStatus::active, "runs in a terminated session");
        require(known(g.lessee), "runs on an unknown host");
        require(g.lease > 0, "runs without a lease");
        require(std::find(nogo.begin(), nogo.end(), g.lessee) == nogo.end(), "runs on a nogo host");
        if (known(g.lessee)) {
            sums.running.emplace(g.lessee, GrainKey{key, number});
            require(state.host(g.lessee)->status != HostStatus::dead, "runs on a dead host");
        }
    }
    require(g.lessee == no_host || known(g.lessee), "remembers an unknown host");
    require(g.course->old_lease.host == no_host || known(g.course->old_lease.host), "an impossible older lease");
    require(std::all_of(nogo.begin(), nogo.end(), known), "nogo names an unknown host");
    if (const auto *finished = std::get_if<Finished>(&g.phase)) {
        const auto place = static_cast<std::size_t>(finished->result_index);
        require(session.results.any_at(place) && session.results[place] == number,
                "finished and not at its place in the order of results");
    }
    require(packable(g) == (session.packable.count(number) != 0), "packable and not packable");
    require(session.damaged.count(number) == 0, "damaged and not damaged");
}

void GrainChecker::check_ready(GrainNumber number, const Grain &g) {
    const auto require = [&](bool good, const char *what) {
        if (!good && sums.wrong.empty()) sums.wrong = "session " + to_text(key) + ": " + what;
    };
    if (Shape now = shape_of(g); !queue || now != shape) {
        shape = std::move(now);
        const auto there = session.ready.find(shape);
        if (there == session.ready.end()) return require(false, "a ready grain in no queue");
        queue = &there->second;
        programs = &sums.programs[shape];
    }
    const std::int64_t position = g.as<Ready>().queue_position;
    require(queue->grains.holds({position, number}, need_of(g)), "a ready grain is not at its place of its queue");
    (*programs)[g.program] += 1;
    sums.positions.push_back(position);
}

void GrainChecker::add(GrainNumber number, const Grain &g) {
    ++sums.counts[static_cast<int>(g.status())];
    const bool rests = g.status() == GrainStatus::ready && g.recent->rest_until != Instant{};
    if (rests) sums.resting.emplace(g.recent->rest_until, GrainKey{key, number});
    if (circles(g)) sums.circling.insert(GrainKey{key, number});
    sums.saved += static_cast<std::uint64_t>(g.course->kept->saved);
    sums.own_trees += stored_by(g);
    sums.failed += g.has_failed();
    sums.with_files += g.files.get() != GrainFiles();
    for (const std::string &digest : g.files->digests) ++sums.contents[digest];
    for (const wire::GrainFile &file : g.files->outputs)
        if (!file.digest.empty()) ++sums.contents[file.digest];
    if (g.status() == GrainStatus::ready) check_ready(number, g);
}

// Of all grains of the session, until one is wrong.
Sums sums_of(const State &state, const SessionKey &key, const Session &session, const Sifted &grains) {
    constexpr std::size_t in_part = 16 * 1024;
    const Settled &settled = grains.settled;
    const auto &others = grains.others;  // no binding, which clang before 16 does not capture
    std::vector<Sums> parts(others.size() / in_part + 1);
    in_parts(parts.size(), [&](std::size_t i) {
        GrainChecker checker{state, key, session};
        const std::size_t end = std::min(others.size(), (i + 1) * in_part);
        for (std::size_t at = i * in_part; at < end && checker.sums.wrong.empty(); ++at) {
            checker.check(others[at]->first, others[at]->second);
            if (checker.sums.wrong.empty()) checker.add(others[at]->first, others[at]->second);
        }
        parts[i] = std::move(checker.sums);
    });
    for (std::size_t i = 1; i < parts.size(); ++i) parts[0].add(std::move(parts[i]));
    for (std::size_t i = 0; i < std::size(settled.counts); ++i) parts[0].counts[i] += settled.counts[i];
    parts[0].failed += settled.failed;
    parts[0].saved += settled.saved_us;
    return std::move(parts[0]);
}

// Every ready grain has its place, no two have the same, and there are no other places.
void Checker::check_queues(const std::string &name, const Session &session, Sums &sums) {
    std::size_t places = 0;
    std::vector<std::int64_t> &positions = sums.positions;
    for (const auto &[shape, queue] : session.ready) {
        require(!queue.grains.empty(), name + "an empty queue was kept");
        places += queue.grains.size();
        require(queue.programs == sums.programs[shape], name + "its queue's programs differ from its grains'");
    }
    require(places == positions.size(), name + "its queues hold grains that are not ready");
    if (!std::is_sorted(positions.begin(), positions.end())) std::sort(positions.begin(), positions.end());
    require(std::adjacent_find(positions.begin(), positions.end()) == positions.end(),
            name + "two grains at one place of the queue");
}

void Checker::check_session(const SessionKey &key, const Session &session, Sums sums) {
    const std::string name = "session " + to_text(key) + ": ";
    const SessionInfo &info = session.info;
    require(sums.wrong.empty(), sums.wrong);
    if (!wrong.empty()) return;
    for (const auto &[host, grain] : sums.running) running[static_cast<std::size_t>(host)].insert(grain);
    for (const auto &[digest, count] : sums.contents) contents[digest] += count;
    resting.merge(sums.resting);
    circling.merge(sums.circling);
    check_queues(name, session, sums);
    require(sums.failed == session.failed, name + "the number of grains that failed differs");
    require(sums.saved == session.saved_us,
            name + "the processor time that checkpoints saved differs from its grains'");
    require(sums.with_files == session.with_files, name + "the number of grains with files differs");
    require(sums.own_trees == session.own_trees, name + "the disk that its grains take differs");
    for (const GrainNumber number : session.packable)
        require(session.grains.count(number) != 0, name + "a packable grain is missing");
    // Each finished grain is at its place, so there are no others if there are as many.
    const ResultOrder &results = session.results;
    require(results.size() == static_cast<std::size_t>(std::max(0, info.result_count)) && results.counts_agree() &&
                results.count_below(results.size()) == sums.counts[static_cast<int>(GrainStatus::finished)],
            name + "results, or how many there are, differ from its grains");
    require(std::equal(sums.counts, sums.counts + 4, session.counts), name + "counts differ from its grains");
    require(0 <= info.sent && info.sent <= info.result_count, name + "sent beyond its results");
    require(info.sent <= info.shown && info.shown <= info.result_count, name + "shown is not between sent and count");
    require(info.decided == decided_in(session.grains), name + "how far it has decided differs from its grains'");
    require(info.status == SessionStatus::active || session.waiters.empty(), name + "waiters in a terminated session");
    require(age_in(info.seniority) > 0 && age_in(info.seniority) < state.next_seniority &&
                nice_in(info.seniority) <= wire::most_nice,
            name + "seniority was never given out");
    for (const Waiter &w : session.waiters)
        require(w.conn != no_connection && w.next >= 0 && w.next <= info.result_count,
                name + "a waiter without a possible answer");
}

void Checker::check_hosts() {
    require(state.running.size() == state.hosts.size(), "one set of running grains per host");
    if (!wrong.empty()) return;
    std::map<std::string, HostId> ids;
    std::map<std::uint32_t, std::set<HostId>> open;
    std::map<ConnId, HostId> conns;
    std::set<std::pair<Instant, HostId>> deadlines, lapses;
    decltype(state.lacking) lacking;
    for (std::size_t i = 0; i < state.hosts.size(); ++i) {
        const Host &host = state.hosts[i];
        const auto id = static_cast<HostId>(i);
        require(ids.emplace(host.config->name, id).second, "two hosts named " + host.config->name);
        require(host.conn == no_connection || conns.emplace(host.conn, id).second, "two hosts on one connection");
        if (deadline_of(host) != Instant::never()) deadlines.emplace(deadline_of(host), id);
        if (lapse_of(host) != Instant::never()) lapses.emplace(lapse_of(host), id);
        for (const auto &[program, until] : host.missing) lacking[program].insert(id);
        require(host.status != HostStatus::dead || host.conn == no_connection,
                "dead host " + host.config->name + " is connected");
        if (state.free_slots(id) > 0) open[host.config->host_class].insert(id);
    }
    require(ids == state.host_ids, "host ids differ from the hosts");
    require(open == state.open_hosts, "open hosts differ from the hosts");
    require(conns == state.host_of_conn, "connections differ from the hosts");
    require(deadlines == state.deadlines, "deadlines differ from the hosts");
    require(lapses == state.lapses, "when marks lapse differs from the hosts");
    require(lacking == state.lacking, "missing programs differ from the hosts");
    require(state.waiting_calls.empty() || state.backup.patience != Instant::never(), "first calls never time out");
}

void Checker::check_stored() {
    Stored stored = state.stored.facts();
    std::map<std::string, std::int64_t> parked;
    for (const auto &[key, session] : state.sessions) {
        stored.add_session(key.user, static_cast<std::int64_t>(stored_by(session.info) + session.own_trees));
        for (const auto &[number, g] : session.grains) {
            if (session.with_files == 0) break;
            for (const std::string &digest : g.files->digests) stored.use(key.user, digest, true);
            for (const wire::GrainFile &file : g.files->outputs)
                if (!file.digest.empty()) stored.use(key.user, file.digest, true);
        }
        if (!session.waiters.empty()) parked[key.user] += static_cast<std::int64_t>(session.waiters.size());
    }
    require(stored == state.stored, "what users have stored differs from their sessions");
    require(parked == state.parked, "parked calls of users differ");
}

void Checker::check_indexes() {
    std::map<std::uint64_t, SessionKey> active;
    decltype(state.waiting) waiting;
    std::map<std::string, UserCounts> users;
    std::map<ConnId, std::set<SessionKey>> parked;
    std::set<std::uint64_t> seniorities;
    for (const auto &[key, why] : state.set_aside)
        require(!state.session(key), "session " + to_text(key) + " is both present and set aside");
    for (const auto &[key, session] : state.sessions) {
        require(seniorities.insert(session.info.seniority).second, "two sessions of one seniority");
        const bool closed = session.info.status == SessionStatus::terminated;
        require((closed && !session.packable.empty()) == (state.unpacked.count(key) != 0),
                "sessions to be packed differ");
        for (const Waiter &w : session.waiters) parked[w.conn].insert(key);
        if (session.info.status != SessionStatus::active) continue;
        active.emplace(session.info.seniority, key);
        for (const auto &[shape, queue] : session.ready) waiting[shape][key.user].emplace(session.info.seniority, key);
        const auto count = [&counts = session.counts](GrainStatus s) { return counts[static_cast<int>(s)]; };
        UserCounts &user = users[key.user];
        user.sessions += 1;
        user.unfinished += count(GrainStatus::ready) + count(GrainStatus::running);
        user.running += count(GrainStatus::running);
    }
    require(active == state.by_seniority, "order of seniority differs from the sessions");
    require(waiting == state.waiting, "sessions with ready grains differ");
    for (const auto &[shape, of_shape] : waiting)
        for (const auto &[user, sessions] : of_shape) users[user].shapes += 1;
    require(running == state.running, "running grains differ from their hosts");
    std::vector<std::set<GrainKey>> ahead(state.hosts.size());
    std::set<HostId> crowded;
    for (std::size_t i = 0; i < running.size(); ++i)
        for (const GrainKey &key : running[i])
            if (state.grain(key)->ahead) ahead[i].insert(key), crowded.insert(static_cast<HostId>(i));
    require(ahead == state.ahead && crowded == state.crowded, "grains that wait for a slot differ from their hosts");
    require(resting == state.resting, "pausing grains differ");
    require(circling == state.circling, "repeatedly returned grains differ");
    require(users == state.users, "counts of users differ from their sessions");
    require(contents == state.contents, "contents that grains name differ");
    check_stored();
    require(parked == state.waiting_conns, "parked calls differ from the sessions'");
    std::vector<Used> used(state.hosts.size());
    for (std::size_t i = 0; i < running.size(); ++i)
        for (const GrainKey &key : running[i]) used[i].add(used_by(state.grain(key)->demands));
    require(used == state.used, "what is in use on hosts differs from their grains");
    Amounts of_pool;
    for (const Used &of_host : used) add_to(of_pool, of_host.resources);
    require(of_pool == state.used_of_pool, "resources in use in the pool differ from its hosts'");
}

}  // namespace

const char *wrong_record(const SessionInfo &info, const Grain &g) {
    const std::vector<HostId> &nogo = g.course->nogo;
    const auto twice = [&](HostId id) { return std::count(nogo.begin(), nogo.end(), id) != 1; };
    const auto *ready = std::get_if<Ready>(&g.phase);
    const auto *finished = std::get_if<Finished>(&g.phase);
    const auto *killed = std::get_if<Killed>(&g.phase);
    const std::uint64_t held =
        g.course->out_length + g.course->err_length + g.course->checkpoint_length + g.course->message_length;
    if (g.lease > g.incarnation) return "its lease is above the highest one";
    if (g.course->old_lease.host != no_host && g.course->old_lease.lease == g.lease) return "an impossible older lease";
    if (g.course->moves->size() > limits::moves_kept) return "too many moves are kept";
    if (std::any_of(nogo.begin(), nogo.end(), twice)) return "nogo names a host twice";
    if (finished && finished->result_index < 0) return "finished without a result";
    if (finished && finished->result_index >= info.result_count) return "result index beyond the count";
    if (g.known < 0 || g.known > info.shown) return "submitted after results that were not handed out";
    if (killed && (killed->after < 0 || killed->after > info.shown))
        return "killed after results that were not handed out";
    if (g.course->told > g.course->sequence) return "something was shown that it does not have";
    if (g.demands->attempts < 1 || g.course->failures > g.demands->attempts) return "more failures than attempts";
    if (!g.is_over() && g.course->failures == g.demands->attempts) return "no attempt left, but not finished";
    if (!g.own_tree && g.params_own_file) return "parameters without a place";
    if (!g.own_tree && !g.is_over() && held != 0) return "contents without a place";
    if (g.course->input_position > g.input_length) return "input position beyond its input";
    if (!g.params_own_file && g.params_offset + g.params_length > info.inputs_length)
        return "parameters beyond the session's inputs";
    if (!g.own_tree && held != 0 && g.course->result_offset + held > info.results_length)
        return "contents beyond the session's results";
    if (ready && (ready->queue_position < info.queue_front || ready->queue_position >= info.queue_back))
        return "queue position was never given out";
    return nullptr;
}

std::string check(const State &state) {
    std::map<SessionKey, Sifted> all;
    for (const auto &[key, session] : state.sessions) {
        auto &others = all[key].others;
        for (auto at = session.grains.begin(); at != session.grains.end(); ++at) others.push_back(at);
    }
    return check(state, all);
}

std::string check(const State &state, const std::map<SessionKey, Sifted> &grains) {
    Checker checker{state, {}, {}, {}, {}, {}};
    checker.check_hosts();
    if (!checker.wrong.empty()) return checker.wrong;
    checker.running.resize(state.hosts.size());
    for (const auto &[key, session] : state.sessions)
        checker.check_session(key, session, sums_of(state, key, session, grains.at(key)));
    checker.check_indexes();
    return checker.wrong;
}

}  // namespace dcs::core
