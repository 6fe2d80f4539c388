// Every cross reference recomputed from the entities and compared with what State keeps.
#include <algorithm>

#include "scheduler/state/derived.h"
#include "scheduler/state/decision.h"

namespace dcs::core {
namespace {

struct Checker {
    const State &state;
    std::string wrong;
    std::vector<std::set<GrainKey>> running;
    std::vector<std::int64_t> positions;                              // of the ready grains of the session at hand
    std::map<Shape, std::map<std::uint32_t, std::int64_t>> programs;  // and how many are of which program

    std::map<std::string, std::int64_t> contents;
    std::set<std::pair<Instant, GrainKey>> resting;
    std::set<GrainKey> circling;

    void require(bool good, const std::string &what) {
        if (!good && wrong.empty()) wrong = what;
    }
    void check_grain(const SessionKey &key, const Session &session, GrainNumber number, const Grain &g);
    void check_ready(const std::string &name, const Session &session, GrainNumber number, const Grain &g);
    void check_queues(const std::string &name, const Session &session);
    void check_session(const SessionKey &key, const Session &session);
    void check_hosts();
    void check_indexes();
    void check_stored();
};

void Checker::check_grain(const SessionKey &key, const Session &session, GrainNumber number, const Grain &g) {
    const auto require = [&](bool good, const char *what) {
        if (!good && wrong.empty()) wrong = "grain " + to_text(GrainKey{key, number}) + ": " + what;
    };
    const auto known = [&](HostId id) { return state.host(id) != nullptr; };
    const SessionInfo &info = session.info;
    const std::vector<HostId> &nogo = g.course->nogo;
    if (g.status() == GrainStatus::running) {
        require(info.status == SessionStatus::active, "runs in a terminated session");
        require(known(g.lessee), "runs on an unknown host");
        require(g.lease > 0, "runs without a lease");
        require(std::find(nogo.begin(), nogo.end(), g.lessee) == nogo.end(), "runs on a nogo host");
        if (known(g.lessee)) {
            running[static_cast<std::size_t>(g.lessee)].insert(GrainKey{key, number});
            require(state.host(g.lessee)->status != HostStatus::dead, "runs on a dead host");
        }
    }
    require(g.lease <= g.incarnation, "its lease is above the highest one");
    require(g.lessee == no_host || known(g.lessee), "remembers an unknown host");
    require(g.course->old_lease.host == no_host ||
                (known(g.course->old_lease.host) && g.course->old_lease.lease != g.lease),
            "an impossible older lease");
    require(g.course->moves->size() <= limits::moves_kept, "too many moves are kept");
    for (const HostId id : nogo) {
        require(known(id), "nogo names an unknown host");
        require(std::count(nogo.begin(), nogo.end(), id) == 1, "nogo names a host twice");
    }
    const auto *ready = std::get_if<Ready>(&g.phase);
    const auto *finished = std::get_if<Finished>(&g.phase);
    const auto *killed = std::get_if<Killed>(&g.phase);
    require(!finished || finished->result_index >= 0, "finished without a result");
    require(!finished || finished->result_index < info.result_count, "result index beyond the count");
    require(0 <= g.known && g.known <= info.shown, "submitted after results that were not handed out");
    require(!killed || (0 <= killed->after && killed->after <= info.shown),
            "killed after results that were not handed out");
    require(g.course->told <= g.course->sequence, "something was shown that it does not have");
    require(g.demands->attempts >= 1 && g.course->failures <= g.demands->attempts, "more failures than attempts");
    require(g.is_over() || g.course->failures < g.demands->attempts, "no attempt left, but not finished");
    const std::uint64_t held =
        g.course->out_length + g.course->err_length + g.course->checkpoint_length + g.course->message_length;
    require(g.own_tree || !g.params_own_file, "parameters without a place");
    require(g.own_tree || g.is_over() || held == 0, "contents without a place");
    require(packable(g) == (session.packable.count(number) != 0), "packable and not packable");
    require(session.damaged.count(number) == 0, "damaged and not damaged");
    require(g.course->input_position <= g.input_length, "input position beyond its input");
    require(g.params_own_file || g.params_offset + g.params_length <= info.inputs_length,
            "parameters beyond the session's inputs");
    require(g.own_tree || held == 0 || g.course->result_offset + held <= info.results_length,
            "contents beyond the session's results");
    require(!ready || (ready->queue_position >= info.queue_front && ready->queue_position < info.queue_back),
            "queue position was never given out");
}

void Checker::check_ready(const std::string &name, const Session &session, GrainNumber number, const Grain &g) {
    const auto queue = session.ready.find(shape_of(g));
    if (queue == session.ready.end()) return require(false, name + "a ready grain in no queue");
    require(queue->second.grains.holds({g.as<Ready>().queue_position, number}),
            name + "a ready grain is not at its place of its queue");
    programs[shape_of(g)][g.program] += 1;
    positions.push_back(g.as<Ready>().queue_position);
}

// Every ready grain has its place, no two have the same, and there are no other places.
void Checker::check_queues(const std::string &name, const Session &session) {
    std::size_t places = 0;
    for (const auto &[shape, queue] : session.ready) {
        require(!queue.grains.empty(), name + "an empty queue was kept");
        places += queue.grains.size();
        require(queue.programs == programs[shape], name + "its queue's programs differ from its grains'");
    }
    require(places == positions.size(), name + "its queues hold grains that are not ready");
    std::sort(positions.begin(), positions.end());
    require(std::adjacent_find(positions.begin(), positions.end()) == positions.end(),
            name + "two grains at one place of the queue");
}

void Checker::check_session(const SessionKey &key, const Session &session) {
    const std::string name = "session " + to_text(key) + ": ";
    const SessionInfo &info = session.info;
    std::int32_t counts[4] = {0, 0, 0, 0}, with_files = 0;
    ResultOrder results;
    results.resize(static_cast<std::size_t>(std::max(0, info.result_count)));
    std::uint64_t saved = 0;
    std::int32_t failed = 0;
    positions.clear();
    programs.clear();
    for (const auto &[number, g] : session.grains) {
        check_grain(key, session, number, g);
        if (!wrong.empty()) return;
        ++counts[static_cast<int>(g.status())];
        const GrainKey grain{key, number};
        if (g.status() == GrainStatus::ready && g.recent->rest_until != Instant{})
            resting.emplace(g.recent->rest_until, grain);
        if (circles(g)) circling.insert(grain);
        saved += static_cast<std::uint64_t>(g.course->kept->saved);
        failed += g.has_failed();
        with_files += g.files.get() != GrainFiles();
        for (const std::string &digest : g.files->digests) ++contents[digest];
        for (const wire::GrainFile &file : g.files->outputs)
            if (!file.digest.empty()) ++contents[file.digest];
        if (g.status() == GrainStatus::ready) check_ready(name, session, number, g);
        const auto *end = std::get_if<Finished>(&g.phase);
        if (!end) continue;
        const auto index = static_cast<std::size_t>(end->result_index);
        require(index < results.size() && !results.any_at(index), name + "a finished grain has no place of its own");
        if (!wrong.empty()) return;
        results.set(index, number);
    }
    check_queues(name, session);
    require(failed == session.failed, name + "the number of grains that failed differs");
    require(saved == session.saved_us, name + "the processor time that checkpoints saved differs from its grains'");
    require(with_files == session.with_files, name + "the number of grains with files differs");
    for (const GrainNumber number : session.packable)
        require(session.grains.count(number) != 0, name + "a packable grain is missing");
    require(results == session.results, name + "results, or how many there are, differ from its grains");
    require(std::equal(counts, counts + 4, session.counts), name + "counts differ from its grains");
    require(0 <= info.sent && info.sent <= info.result_count, name + "sent beyond its results");
    require(info.sent <= info.shown && info.shown <= info.result_count, name + "shown is not between sent and count");
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
        std::uint64_t own_trees = 0;
        for (const auto &[number, g] : session.grains) {
            own_trees += stored_by(g);
            for (const std::string &digest : g.files->digests) stored.use(key.user, digest, true);
            for (const wire::GrainFile &file : g.files->outputs)
                if (!file.digest.empty()) stored.use(key.user, file.digest, true);
        }
        require(own_trees == session.own_trees, "the disk that session " + to_text(key) + "'s grains take differs");
        stored.add_session(key.user, static_cast<std::int64_t>(stored_by(session.info) + own_trees));
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

std::string check(const State &state) {
    Checker checker{state, {}, {}};
    checker.check_hosts();
    if (!checker.wrong.empty()) return checker.wrong;
    checker.running.resize(state.hosts.size());
    for (const auto &[key, session] : state.sessions) checker.check_session(key, session);
    checker.check_indexes();
    return checker.wrong;
}

}  // namespace dcs::core
