// Random histories: check() after every change (the pool does that), exact roll-backs of random
// turns, the same decision twice, and promises that only a history can break: leases only grow,
// what was handed out never changes, finished and killed are final.
#include "dump.h"
#include "pool.h"
#include "seeded.h"

using namespace dcs;
using namespace dcs::core;

namespace {

struct Seen {  // what the world remembers; a roll-back takes it back
    std::map<std::pair<std::uint64_t, GrainNumber>, Incarnation> leases;  // by (seniority, number)
    std::map<HostId, std::set<std::pair<GrainKey, Incarnation>>> held;    // a host may report on these
    std::map<std::pair<std::uint64_t, int>, GrainNumber> handed_out;      // (seniority, index)
    std::map<std::pair<std::uint64_t, GrainNumber>, std::string> final_state;
};

class World {
public:
    explicit World(std::uint64_t seed) : dice(seed) {
        for (int i = 1; i <= 4; ++i) {
            HostConfig &c = pool.add_host("h" + std::to_string(i), i < 3 ? 1u : i == 3 ? 2u : 3u, 1 + i % 2);
            if (i == 4) c.users = {"ann"};
            c.check = {"h"};
            if (i == 3) c.memory_mb = 100;
        }
        pool.table();
        for (const char *user : {"ann", "bob"})
            for (const char *ident : {"find", "find", "other"}) programs.push_back(pool.begin(user, ident));
    }

    Pool pool;
    Seeded dice;
    std::vector<Program> programs;
    Seen seen;
    std::map<std::string, int> reached;  // how often each kind of effect occurred

    Input random_input() {
        const int kind = dice.below(22);
        if (kind == 20) return order();
        if (kind == 21 && dice.once_in(10)) return PolicyTable{policy()};
        if (kind == 21) return probe_result();
        if (kind < 9) return user_call();
        if (kind < 13) return report();
        if (kind < 14) return launch_result();
        if (kind < 16) return call_in();
        if (kind < 17) return first_call();
        if (kind < 18 && dice.once_in(3)) return ConnectionClosed{some_conn()};
        if (kind < 19 && dice.once_in(20)) return table();
        if (kind < 19) return call_in();
        const Duration little = milliseconds(dice.below(6000));
        pool.now = pool.now + (dice.once_in(10) ? seconds(dice.once_in(2) ? 40 : 70) : little);
        return Tick{};
    }

    void watch(const Input &input) {
        if (const auto *first = std::get_if<ServerFirstCall>(&input)) {
            auto &held = seen.held[host_on(first->conn)];
            held.clear();
            for (const auto &h : first->call->held) held.emplace(wire::key_of(h.key), h.incarnation);
        }
        for (const Effect &e : pool.effects) {
            ++reached[kind_of(e)];
            if (const auto *l = std::get_if<SendLaunch>(&e)) {
                const std::uint64_t age = pool.state.sessions.at(l->key.session).info.seniority;
                Incarnation &last = seen.leases[{age, l->key.grain}];
                REQUIRE(l->head.incarnation > last);
                last = l->head.incarnation;
                // Nothing that the host still has to say can be taken for this lease.
                REQUIRE(seen.held[host_on(l->conn)].emplace(l->key, l->head.incarnation).second);
            }
            if (const auto *r = std::get_if<ReplyResult>(&e)) {
                const std::uint64_t age = pool.state.sessions.at(r->key.session).info.seniority;
                const auto [it, fresh] = seen.handed_out.emplace(std::pair{age, r->head.sent - 1}, r->key.grain);
                REQUIRE(it->second == r->key.grain);
            }
        }
        for (const auto &[key, session] : pool.state.sessions)
            for (const auto &[n, g] : session.grains) watch_grain(session, n, g);
    }

    // What claims to need no commit must not differ in anything that counts.
    void watch_volatile(const State &earlier) {
        std::set<GrainKey> changed;
        for (const Change &c : pool.changes) {
            const auto *set = std::get_if<SetGrain>(&c);
            if (!set || !changed.insert(set->key).second || !set->volatile_only) continue;
            const Grain *old = earlier.grain(set->key);
            REQUIRE(old);
            REQUIRE(describe(earlier, *old) == describe(pool.state, set->grain));
            REQUIRE(old->input_length == set->grain.input_length);
            ++reached["volatile"];
        }
    }

private:
    HostId host_on(ConnId conn) const {
        for (std::size_t i = 0; i < pool.state.hosts.size(); ++i)
            if (pool.state.hosts[i].conn == conn) return static_cast<HostId>(i);
        return no_host;
    }
    static std::string kind_of(const Effect &e) {
        constexpr const char *names[] = {"reply",  "result", "piece",  "difference", "detail", "server",
                                         "launch", "close",  "export", "doctor",     "probe"};
        return names[e.index()];
    }
    // Finished may only become killed, and only if it was not handed out; or begin again, if it did not succeed.
    void watch_grain(const Session &session, GrainNumber n, const Grain &g) {
        if (!g.is_over()) {
            const auto before = seen.final_state.find({session.info.seniority, n});
            if (before == seen.final_state.end()) return;
            REQUIRE(
                (before->second.starts_with("killed") || !before->second.ends_with("/0") || !g.files->outputs.empty()));
            ++reached["again"];
            seen.final_state.erase(before);
            return;
        }
        const auto *finished = std::get_if<Finished>(&g.phase);
        const Finished end = finished ? *finished : Finished{};
        const std::string now = std::string(name_of(g.status())) + std::to_string(end.result_index) + "/" +
                                std::to_string(g.course->out_length) + "/" +
                                std::to_string(end.exit_code + 256 * end.signal);
        std::string &before = seen.final_state[{session.info.seniority, n}];
        if (!before.empty() && before != now) {
            REQUIRE(g.status() == GrainStatus::killed);
            const int index = std::stoi(before.substr(8));
            REQUIRE(before.substr(0, 8) == "finished");
            REQUIRE(seen.handed_out.count({session.info.seniority, index}) == 0);
        }
        before = now;
    }

    UserCall call(const Program &p, UserRequest r) {
        Caller c = pool.caller(p);
        if (dice.once_in(10)) c.request = RequestId{pool.request - static_cast<std::uint64_t>(dice.below(3))};
        if (dice.once_in(40)) c.token[3] ^= 1;
        return {c, std::move(r)};
    }
    Input user_call() {
        const Program &p = programs[static_cast<std::size_t>(dice.below(static_cast<int>(programs.size())))];
        const int session = dice.below(3), grain = dice.below(8);
        const std::string user = dice.once_in(12) ? "ann" : "";
        switch (dice.below(14)) {
        case 0:
        case 1: return call(p, wire::OpenSession{session, static_cast<wire::OpenMode>(dice.below(3)), dice.once_in(2)});
        case 2:
            if (!dice.once_in(3)) return call(p, wire::OpenSession{session, wire::OpenMode::resume, true});
            return call(p, wire::CloseSession{user, session, dice.below(4) - 1});
        case 3:
            if (!dice.once_in(3)) return call(p, wire::OpenSession{session, wire::OpenMode::reopen, false});
            return call(p, wire::CleanSession{user, session});
        case 4: return call(p, wire::Gkill{user, session, grain});
        case 5: return call(p, wire::Query{static_cast<wire::QueryType>(dice.below(5)), user, session, grain, -1, ""});
        case 6: return call(p, wire::Fetch{user, session, grain, wire::Stream::out, 0, 0});
        case 7:
            if (dice.once_in(30)) return call(p, GetAuth{"find", {}, p.token, 1000});
            [[fallthrough]];
        case 8:
        case 9: return call(p, wire::Gwait{session, next_of(p.user, session), dice.once_in(2)});
        default: break;
        }
        SubmitGrain s = Pool::grain(session, grain, static_cast<std::uint32_t>(dice.below(4)),
                                    std::string(dice.once_in(20) ? 40000u : 10u, 'x'));
        s.demands.urgent = dice.once_in(5);
        s.demands.thrash = dice.once_in(5) ? 50 : 0;
        s.demands.attempts = 1 + dice.below(4);
        if (dice.once_in(4)) {
            s.demands.cores = dice.below(3);
            s.demands.memory_mb = dice.below(80);
            s.demands.wall_s = dice.below(2);
        }
        s.program = static_cast<std::uint32_t>(dice.below(3));
        if (grain % 4 == 1) s.files.digests = {some_digest(s.demands.thrash + s.demands.attempts)};
        if (grain % 3 == 1) s.files.outputs = {{wire::FileRole::output, "made", "", 0, ""}};
        const Grain *there = pool.state.grain({{p.user, session}, grain});
        s.again = dice.once_in(2);
        s.only_failed = dice.once_in(2);
        s.in_order = dice.once_in(3);
        if (there != nullptr && dice.once_in(2)) {  // what differs are its demands
            s.as_demanded = there->fingerprint;
            s.program = there->program;
            s.files = there->files;
        }
        return call(p, s);
    }
    static std::string some_digest(std::int64_t n) {
        return std::string(limits::digest_bytes, static_cast<char>('a' + n % 3));
    }
    std::int32_t next_of(const std::string &user, int number) {
        const Session *s = pool.state.session({user, number});
        if (!s || dice.once_in(20)) return dice.below(5) - 1;
        return std::min(s->info.result_count, s->info.sent + dice.below(2));
    }

    GrainKey some_grain(HostId id) {  // mostly one that runs there
        if (id != no_host && !dice.once_in(6)) {
            const auto &there = pool.state.running[static_cast<std::size_t>(id)];
            if (!there.empty()) return *std::next(there.begin(), dice.below(static_cast<int>(there.size())));
        }
        return {{dice.once_in(2) ? "ann" : "bob", dice.below(3)}, dice.below(8)};
    }
    HostId some_host() { return HostId{dice.below(static_cast<int>(pool.state.hosts.size()))}; }
    ConnId conn_of(HostId id) {
        return dice.once_in(30) ? ConnId{12345} : pool.state.hosts[static_cast<std::size_t>(id)].conn;
    }
    ConnId some_conn() {
        if (dice.once_in(2)) return conn_of(some_host());
        return programs[static_cast<std::size_t>(dice.below(static_cast<int>(programs.size())))].conn;
    }
    Input report() {
        const HostId id = some_host();
        wire::GrainReport r;
        const GrainKey key = some_grain(id);
        r.key = wire::wire_of(key);
        const Grain *g = pool.state.grain(key);
        r.incarnation = g ? g->incarnation : 1;
        if (dice.once_in(8)) r.incarnation -= 1;
        r.first_seq = g ? g->course->sequence + 1 : 1;
        if (dice.once_in(10)) r.first_seq += static_cast<std::uint32_t>(dice.below(4)) - 1;
        r.last_seq = r.first_seq + static_cast<std::uint32_t>(dice.below(3)) - 1;
        r.has_checkpoint = dice.once_in(2);
        if (r.has_checkpoint) r.checkpoint = std::string(static_cast<std::size_t>(dice.below(20)), 'c');
        r.input_position = (g ? g->course->input_position : 0) + static_cast<std::uint64_t>(dice.below(6));
        if (dice.once_in(2)) r.message = "message";
        if (r.last_seq >= r.first_seq) r.out = std::string(dice.once_in(20) ? 40000u : 5u, 'o');
        r.ended = dice.once_in(2);
        if (r.ended && dice.once_in(2)) r.exit_code = 1;
        r.innocent = r.ended && dice.once_in(4);
        if (r.ended && !r.innocent && dice.once_in(4)) {
            r.signal = dice.once_in(2) ? 9 : 24;
            r.limit = r.limit_of_host = true;
        }
        r.usage.user_us = dice.below(1000);
        const std::string digest = some_digest(r.usage.user_us);
        if (r.usage.user_us % 2 == 0) r.files = {{wire::FileRole::output, "made", digest, 9, ""}};
        return ServerReport{conn_of(id), id, std::make_shared<const wire::GrainReport>(r)};
    }
    Input launch_result() {
        const HostId id = some_host();
        wire::LaunchResult r;
        const GrainKey key = some_grain(id);
        r.key = wire::wire_of(key);
        const Grain *g = pool.state.grain(key);
        r.incarnation = g ? g->incarnation : 1;
        r.ok = dice.once_in(2);
        r.staged = !r.ok && dice.once_in(2);
        r.code = static_cast<std::int32_t>(dice.once_in(2) ? Code::not_found : Code::limit);
        return ServerLaunchResult{conn_of(id), id, r};
    }
    Input call_in() {
        const HostId id = some_host();
        wire::CallIn c{0, dice.below(60000), dice.once_in(2)};
        c.limits.memory_mb = dice.below(3) * 64;
        c.limits.cpu_s = dice.below(3) * 100;
        return ServerCallIn{conn_of(id), id, c};
    }
    Input first_call() {
        const HostId id = some_host();
        auto c = std::make_shared<wire::FirstCall>();
        c->host = dice.once_in(20) ? "nobody" : pool.state.hosts[static_cast<std::size_t>(id)].config->name;
        for (const auto &[key, incarnation] : seen.held[id])
            if (!dice.once_in(4)) c->held.push_back({wire::wire_of(key), incarnation, dice.below(1000)});
        return ServerFirstCall{ConnId{++last_conn_}, c};
    }
    // Of one with privilege, mostly.
    Input order() {
        Program p = programs[static_cast<std::size_t>(dice.below(static_cast<int>(programs.size())))];
        p.privileged = !dice.once_in(5);
        const int session = dice.below(3), grain = dice.below(8);
        if (dice.once_in(3)) return call(p, wire::RestartGrain{"", session, grain});
        if (dice.once_in(3)) return call(p, wire::Explain{"", session, grain});
        wire::SetHost c;
        c.host = pool.state.hosts[static_cast<std::size_t>(some_host())].config->name;
        if (dice.once_in(4)) c.slots = dice.below(3);
        if (dice.once_in(4)) c.drained = dice.below(2);
        if (dice.once_in(6)) c.host_class = 1u << dice.below(2);
        if (dice.once_in(6)) c.limit_s = 20 + dice.below(200);
        if (dice.once_in(6)) c.extended_s = 20 + dice.below(400);
        c.reset = dice.once_in(3);
        c.clear_nogo = dice.once_in(3);
        if (c.clear_nogo && dice.once_in(2)) c.session = session, c.grain = grain;
        return call(p, c);
    }
    Policy policy() {
        Policy p;
        p.fair_share = dice.once_in(3);
        if (dice.once_in(3)) p.running_per_user = 1 + dice.below(4);
        if (dice.once_in(3)) p.grains_per_user = 4 + dice.below(10);
        if (dice.once_in(4)) p.sessions_per_user = 1 + dice.below(3);
        if (dice.once_in(3)) p.probation = 1 + dice.below(2);
        if (dice.once_in(6)) p.users = {"ann"};
        return p;
    }
    Input probe_result() {
        const HostId id = some_host();
        const auto maybe = [&] { return dice.once_in(3) ? std::optional<bool>() : dice.once_in(2); };
        return ProbeResult{id, pool.state.hosts[static_cast<std::size_t>(id)].probe, maybe(), maybe(), maybe()};
    }
    Input table() {
        std::vector<HostConfig> hosts;
        for (HostConfig c : pool.hosts) {
            if (dice.once_in(5)) continue;
            if (dice.once_in(3)) c.slots = dice.below(3);
            hosts.push_back(c);
        }
        if (dice.once_in(4)) {
            HostConfig c = pool.hosts[0];
            c.name = "extra" + std::to_string(dice.below(3));
            hosts.push_back(c);
        }
        return HostTable{hosts};
    }
    std::uint64_t last_conn_ = 5000;
};

void random_life(std::uint64_t seed, int steps) {
    World w(seed);
    for (int step = 0; step < steps;) {
        const bool take_back = w.dice.once_in(3);
        const std::string before = take_back ? Dump::of(w.pool.state) : "";
        const Seen seen = take_back ? w.seen : Seen{};
        Undo undo;
        for (int n = 1 + w.dice.below(8); n > 0; --n, ++step) {
            const Input input = w.random_input();
            const State earlier = w.pool.state;
            w.pool.feed(input, &undo);
            w.watch(input);
            w.watch_volatile(earlier);
        }
        if (!take_back) continue;
        roll_back(w.pool.state, undo);
        REQUIRE(Dump::of(w.pool.state) == before);
        REQUIRE(check(w.pool.state).empty());
        w.seen = seen;
    }
    CAPTURE(seed);
    for (const char *kind :
         {"reply", "result", "piece", "difference", "detail", "server", "launch", "close", "volatile", "probe"}) {
        CAPTURE(kind);
        CHECK(w.reached[kind] > 0);
    }
    CHECK(w.reached["again"] > 0);
    CHECK(w.reached["launch"] > steps / 60);
    CHECK(w.reached["result"] > steps / 400);
}

}  // namespace

TEST_CASE("20,000 random steps keep every invariant, and any turn can be taken back") {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) random_life(seed, 5000);
}

TEST_CASE("the same history twice is the same history") {
    const auto history = [](std::uint64_t seed) {
        World w(seed);
        std::string text;
        for (int step = 0; step < 500; ++step) {
            w.pool.feed(w.random_input(), nullptr);
            for (const std::string &line : w.pool.events) text += line + "\n";
            w.pool.events.clear();
            for (const Change &c : w.pool.changes) text += describe(w.pool.state, c) + "\n";
            for (const Effect &e : w.pool.effects) text += describe(w.pool.state, e) + "\n";
        }
        return text + Dump::of(w.pool.state);
    };
    CHECK(history(7) == history(7));
    CHECK(history(7) != history(8));
}
