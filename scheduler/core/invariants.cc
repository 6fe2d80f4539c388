// Every cross reference recomputed from the entities and compared with what State keeps.
#include <algorithm>

#include "scheduler/core/decision.h"

namespace dcs::core {
namespace {

struct Checker {
    const State &state;
    std::string wrong;
    std::vector<std::set<GrainKey>> running;

    void require(bool good, const std::string &what) {
        if (!good && wrong.empty()) wrong = what;
    }
    void check_grain(const SessionKey &key, const Session &session, GrainNumber number,
                     const Grain &g);
    void check_session(const SessionKey &key, const Session &session);
    void check_hosts();
    void check_indexes();
};

void Checker::check_grain(const SessionKey &key, const Session &session, GrainNumber number,
                          const Grain &g) {
    const std::string name = "grain " + to_text(GrainKey{key, number}) + ": ";
    const auto known = [&](HostId id) { return state.host(id) != nullptr; };
    const SessionInfo &info = session.info;
    if (g.status == GrainStatus::running) {
        require(info.status == SessionStatus::active, name + "runs in a terminated session");
        require(known(g.host), name + "runs on an unknown host");
        require(g.incarnation > 0, name + "runs without an incarnation");
        require(std::find(g.nogo.begin(), g.nogo.end(), g.host) == g.nogo.end(),
                name + "runs on a nogo host");
        if (known(g.host)) {
            running[static_cast<std::size_t>(g.host)].insert(GrainKey{key, number});
            require(state.host(g.host)->status != HostStatus::dead, name + "runs on a dead host");
        }
    }
    require(g.host == no_host || known(g.host), name + "remembers an unknown host");
    for (std::size_t i = 0; i < g.nogo.size(); ++i) {
        require(known(g.nogo[i]), name + "nogo names an unknown host");
        require(std::count(g.nogo.begin(), g.nogo.end(), g.nogo[i]) == 1,
                name + "nogo names a host twice");
    }
    const bool finished = g.status == GrainStatus::finished;
    require(finished == (g.result_index >= 0), name + "result index and status disagree");
    require(g.result_index < info.result_count, name + "result index beyond the count");
    require(g.attempts >= 1 && g.failures <= g.attempts, name + "more failures than attempts");
    require(finished || g.status == GrainStatus::killed || g.failures < g.attempts,
            name + "no attempt left, not finished");
    require(g.own_tree || (!g.params_own_file && g.checkpoint_length == 0),
            name + "needs a tree of its own");
    require(g.own_tree || finished || g.status == GrainStatus::killed ||
                (g.out_length == 0 && g.err_length == 0),
            name + "output without a place");
    require(g.input_position <= g.input_length, name + "input position beyond its input");
    require(g.params_own_file || g.params_offset + g.params_length <= info.inputs_length,
            name + "parameters beyond the session's inputs");
    require(!finished || g.own_tree ||
                g.result_offset + g.out_length + g.err_length <= info.results_length,
            name + "result beyond the session's results");
    if (g.status == GrainStatus::ready)
        require(g.queue_position >= info.queue_front && g.queue_position < info.queue_back,
                name + "queue position was never given out");
}

void Checker::check_session(const SessionKey &key, const Session &session) {
    const std::string name = "session " + to_text(key) + ": ";
    const SessionInfo &info = session.info;
    Session fresh;
    fresh.results.assign(static_cast<std::size_t>(std::max(0, info.result_count)), -1);
    for (const auto &[number, g] : session.grains) {
        check_grain(key, session, number, g);
        if (!wrong.empty()) return;
        ++fresh.counts[static_cast<int>(g.status)];
        if (g.status == GrainStatus::ready) {
            require(fresh.ready.emplace(g.queue_position, number).second,
                    name + "two grains at one place of the queue");
            fresh.ready_by_class[g.host_class].emplace(g.queue_position, number);
        } else if (g.status == GrainStatus::finished) {
            GrainNumber &place = fresh.results[static_cast<std::size_t>(g.result_index)];
            require(place == -1, name + "two grains with one result index");
            place = number;
        }
    }
    require(fresh.ready == session.ready, name + "ready queue differs from its grains");
    require(fresh.ready_by_class == session.ready_by_class, name + "ready queue by class differs");
    require(fresh.results == session.results, name + "results differ from its grains");
    require(std::equal(fresh.counts, fresh.counts + 4, session.counts),
            name + "counts differ from its grains");
    require(0 <= info.sent && info.sent <= info.result_count, name + "sent beyond its results");
    require(info.sent <= info.shown && info.shown <= info.result_count,
            name + "shown is not between sent and count");
    require(info.status == SessionStatus::active || session.waiters.empty(),
            name + "waiters in a terminated session");
    require(info.seniority > 0 && info.seniority < state.next_seniority,
            name + "seniority was never given out");
    for (const Waiter &w : session.waiters)
        require(w.conn != 0 && w.next >= 0 && w.next <= info.result_count,
                name + "a waiter that cannot be answered");
}

void Checker::check_hosts() {
    require(state.running.size() == state.hosts.size(), "one set of running grains per host");
    if (!wrong.empty()) return;
    std::map<std::string, HostId> ids;
    std::set<HostId> open;
    std::set<ConnId> conns;
    for (std::size_t i = 0; i < state.hosts.size(); ++i) {
        const Host &host = state.hosts[i];
        const auto id = static_cast<HostId>(i);
        require(ids.emplace(host.config.name, id).second, "two hosts named " + host.config.name);
        require(host.conn == 0 || conns.insert(host.conn).second, "two hosts on one connection");
        require(host.status != HostStatus::dead || host.conn == 0,
                "dead host " + host.config.name + " is connected");
        if (state.free_slots(id) > 0) open.insert(id);
    }
    require(ids == state.host_ids, "host ids differ from the hosts");
    require(open == state.open_hosts, "open hosts differ from the hosts");
}

void Checker::check_indexes() {
    std::map<std::uint64_t, SessionKey> active, waiting;
    std::set<std::uint64_t> seniorities;
    for (const auto &[key, why] : state.set_aside)
        require(!state.session(key), "session " + to_text(key) + " is there and set aside");
    for (const auto &[key, session] : state.sessions) {
        require(seniorities.insert(session.info.seniority).second, "two sessions of one seniority");
        if (session.info.status != SessionStatus::active) continue;
        active.emplace(session.info.seniority, key);
        if (!session.ready.empty()) waiting.emplace(session.info.seniority, key);
    }
    require(active == state.by_seniority, "order of seniority differs from the sessions");
    require(waiting == state.waiting, "sessions with ready grains differ");
    require(running == state.running, "running grains differ from their hosts");
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
