// What explain says of a host never disagrees with what placement does there.
#include "pool.h"
#include "scheduler/core/explain.h"
#include "seeded.h"

using namespace dcs;
using namespace dcs::core;

namespace {

struct RandomPool {
    Pool pool;
    Seeded dice;
    std::vector<Program> programs;
    Program root;
    std::map<Why, int> seen;

    explicit RandomPool(std::uint64_t seed) : dice(seed) {
        for (int i = 0; i < 6; ++i) {
            HostConfig &c = pool.add_host("h" + std::to_string(i), 1u << dice.below(3), dice.below(4));
            if (dice.once_in(4)) c.users = {"ann"};
            if (dice.once_in(4)) c.binary_class = "x";
            if (dice.once_in(8)) pool.forms[c.name] = wire::positional_form - 1;
            if (dice.once_in(3)) c.cores = 1 + dice.below(4);
            if (dice.once_in(3)) c.memory_mb = 50 + dice.below(200);
        }
        pool.table();
        for (const HostConfig &c : pool.hosts)
            if (!dice.once_in(5)) pool.first_call(c.name);
        Policy rules;
        rules.fair_share = dice.once_in(4);
        if (dice.once_in(4)) rules.running_per_user = 2 + dice.below(4);
        if (dice.once_in(3)) rules.probation = 1;
        pool.rules(rules);
        root = pool.stranger("root", true);
        for (const char *user : {"ann", "bob", "carl"}) {
            programs.push_back(pool.begin(user, "find"));
            pool.open(programs.back(), 1, wire::OpenMode::resume);
        }
    }

    void submit() {
        const Program &p = programs[static_cast<std::size_t>(dice.below(3))];
        SubmitGrain g = Pool::grain(1, dice.below(40), static_cast<std::uint32_t>(dice.below(8)));
        if (dice.once_in(3)) g.demands.thrash = dice.below(120);
        if (dice.once_in(3)) g.demands.cores = dice.below(4);
        if (dice.once_in(3)) g.demands.memory_mb = dice.below(200);
        g.program = static_cast<std::uint32_t>(dice.below(4));
        g.demands.urgent = dice.once_in(5);
        if (dice.once_in(8)) g.files.binary_classes = {dice.once_in(2) ? "x" : "y"};
        pool.call(p, g);
    }
    void host_event() {
        const std::string host = "h" + std::to_string(dice.below(6));
        const HostId id = pool.id(host);
        const auto &there = pool.state.running[static_cast<std::size_t>(id)];
        const int kind = dice.below(9);
        if (kind == 0) return void(pool.hang_up(host));
        if (kind == 1) return void(pool.first_call(host));
        if (kind == 2) {
            wire::SetHost set;
            set.host = host;
            set.drained = dice.below(2);
            return void(pool.set(root, set));
        }
        if (pool.state.host(id)->conn == no_connection) return;
        if (kind < 5) return void(pool.call_in(host, dice.below(100'000), dice.once_in(3)));
        if (there.empty()) return;
        const std::string grain = to_text(*std::next(there.begin(), dice.below(static_cast<int>(there.size()))));
        if (kind == 5) pool.launched(host, grain, dice.once_in(2) ? Code::not_found : Code::limit);
        if (kind == 6) pool.end(host, grain, dice.below(2), 0, dice.once_in(4));
        if (kind == 7) pool.launched(host, grain);
        if (kind == 8) pool.staged(host, grain);
    }
    void step() {
        if (dice.once_in(3)) return submit();
        if (dice.once_in(10)) return void(pool.wait(seconds(dice.below(20))));
        if (dice.once_in(6)) pool.now = pool.now + milliseconds(dice.below(9000));
        host_event();
    }

    // What a call-in with the same free memory, and with a boundary, would do for this host.
    std::optional<GrainKey> launched_there(HostId id, const Input &input) const {
        State copy = pool.state;
        for (const Change &c : decide(copy, pool.now, input).changes) {
            const auto *set = std::get_if<SetGrain>(&c);
            if (set && set->grain.status() == GrainStatus::running && set->grain.lessee == id) return set->key;
        }
        return {};
    }

    void compare(const GrainKey &key, const Grain &g, HostId id) {
        const Why why = why_not(pool.state, pool.now, id, key, g);
        ++seen[why];
        const Host &host = *pool.state.host(id);
        const bool free = pool.state.free_slots(id) > 0;
        CAPTURE(reason_of(why).word, to_text(key), host.config->name);
        REQUIRE(could_run(pool.state, id, key.session, g) == !for_ever(why));
        const bool takes = free && launched_there(id, FillHost{id}) == key;
        REQUIRE((why == Why::takes_it) == takes);
        const bool host_away = why >= Why::drained && why <= Why::host_shut;
        if (!host_away && !for_ever(why)) {
            const bool suits = would_take(pool.state, pool.now, id, key, g, {});
            if (why == Why::takes_it || why == Why::others_first) REQUIRE(suits);
            if (why == Why::thrash || why == Why::memory_in_use || why == Why::cores_in_use || why == Why::held_back ||
                why == Why::program_missing || why == Why::resting)
                REQUIRE_FALSE(suits);
        }
        const bool usurps = !free && launched_there(id, Usurp{id}) == key;
        if (why == Why::usurps) REQUIRE(usurps);
        if (why == Why::busy) REQUIRE_FALSE(usurps);
    }
    void compare_all() {
        for (const auto &[key, session] : pool.state.sessions)
            for (const auto &[number, g] : session.grains) {
                if (g.status() != GrainStatus::ready || session.info.status != SessionStatus::active) continue;
                for (std::size_t i = 0; i < pool.state.hosts.size(); ++i)
                    if (pool.state.hosts[i].configured) compare({key, number}, g, static_cast<HostId>(i));
            }
    }
};

}  // namespace

TEST_CASE("on random pools, a host is said to take a grain exactly when it does") {
    std::map<Why, int> seen;
    for (std::uint64_t seed = 1; seed <= 90; ++seed) {
        CAPTURE(seed);
        RandomPool w(seed);
        for (int step = 0; step < 60; ++step) {
            w.step();
            w.compare_all();
        }
        for (const auto &[why, n] : w.seen) seen[why] += n;
    }
    // the pools were random enough
    for (const Why why : {Why::takes_it, Why::usurps, Why::busy, Why::others_first, Why::thrash, Why::cores_in_use,
                          Why::held_back, Why::program_missing, Why::drained, Why::not_connected, Why::user_quota,
                          Why::memory_in_use, Why::no_program, Why::too_few_cores, Why::no_binary, Why::too_old}) {
        CAPTURE(reason_of(why).word);
        CHECK(seen[why] > 0);
    }
}
