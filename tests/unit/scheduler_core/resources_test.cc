// Named resources: who gets what of hosts and the pool, who waits, and what is said of it.
#include "base/resources.h"
#include "base/load_limits.h"
#include "pool.h"
#include "scheduler/core/explain.h"
#include "scheduler/core/placement.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::core;

namespace {

constexpr auto wants = Pool::wants;

// Hosts of eight slots, with what each offers.
Pool pool_of(const std::vector<std::string> &offers) {
    Pool pool;
    for (std::size_t i = 0; i < offers.size(); ++i)
        pool.add_host("h" + std::to_string(i + 1), 1, 8).resources = *offers_of(offers[i]);
    pool.table();
    for (std::size_t i = 0; i < offers.size(); ++i) {
        pool.first_call("h" + std::to_string(i + 1));
        pool.call_in("h" + std::to_string(i + 1));
    }
    return pool;
}

std::string summary(Pool &pool, const std::string &grain) {
    return explanation(pool.state, pool.now, Pool::key(grain)).summary;
}
std::string reason(Pool &pool, const std::string &host, const std::string &grain) {
    const GrainKey k = Pool::key(grain);
    return reason_of(why_not(pool.state, pool.now, pool.id(host), k, *pool.state.grain(k))).word;
}

std::string offers_in(const Pool &pool) {
    for (const Effect &e : pool.effects)
        if (const auto *launch = std::get_if<SendLaunch>(&e)) return launch->head.offers;
    return "none";
}

}  // namespace

TEST_CASE("resources: a grain goes where there is enough, and later ones wait for what is in use") {
    Pool pool = pool_of({"scratch_gb=10", "gpu=[0,1],scratch_gb=100"});
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    CHECK(pool.call(find, wants(1, 0, "gpu=1")) == Lines{"ann: done", "h2: launch ann/1:0 inc 1 next 1"});
    CHECK(offers_in(pool) == "gpu=[0,1]");
    CHECK(pool.call(find, wants(1, 1, "scratch_gb=50")) == Lines{"ann: done", "h2: launch ann/1:1 inc 1 next 1"});
    CHECK(offers_in(pool) == "gpu=[0,1]");  // for what the host keeps from the grain
    CHECK(pool.call(find, wants(1, 2, "gpu=1,scratch_gb=50")) == Lines{"ann: done", "h2: launch ann/1:2 inc 1 next 1"});
    CHECK(pool.call(find, wants(1, 3, "gpu=1")) == Lines{"ann: done"});
    CHECK(pool.call(find, wants(1, 4, "scratch_gb=5")) == Lines{"ann: done", "h1: launch ann/1:4 inc 1 next 1"});
    CHECK(offers_in(pool).empty());
    CHECK(pool.call(find, wants(1, 5, "")) == Lines{"ann: done", "h1: launch ann/1:5 inc 1 next 1"});
    CHECK(reason(pool, "h1", "ann/1:3") == "no_resource");
    CHECK(reason(pool, "h2", "ann/1:3") == "resource_in_use");
    CHECK(summary(pool, "ann/1:3") == about("all 2 gpu h2 use ann/1:0 ann/1:2"));
    CHECK(pool.end("h2", "ann/1:0") ==
          Lines{"h2: ack ann/1:0 inc 1 last 1 ended taken", "h2: launch ann/1:3 inc 1 next 1"});
}

TEST_CASE("resources: a grain that asks for many is not passed by later ones that ask for few") {
    Pool pool = pool_of({"gpu=[0,1,2,3]"});
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    for (int i = 0; i < 4; ++i) pool.call(find, wants(1, i, "gpu=1"));
    pool.call(find, wants(1, 4, "gpu=4"));
    pool.call(find, wants(1, 5, "gpu=1"));
    CHECK(pool.call(find, wants(1, 6, "")) == Lines{"ann: done", "h1: launch ann/1:6 inc 1 next 1"});
    for (int i = 0; i < 3; ++i) {
        const std::string grain = "ann/1:" + std::to_string(i);
        CHECK(pool.end("h1", grain) == Lines{"h1: ack " + grain + " inc 1 last 1 ended taken"});
        CHECK(pool.call_in("h1").empty());
    }
    CHECK(reason(pool, "h1", "ann/1:5") == "kept_for_earlier");
    CHECK(pool.end("h1", "ann/1:3") ==
          Lines{"h1: ack ann/1:3 inc 1 last 1 ended taken", "h1: launch ann/1:4 inc 1 next 1"});
    CHECK(pool.end("h1", "ann/1:4") ==
          Lines{"h1: ack ann/1:4 inc 1 last 1 ended taken", "h1: launch ann/1:5 inc 1 next 1"});
}

TEST_CASE("resources: what can run nowhere keeps nothing from others, and d_gwait says why") {
    Pool pool = pool_of({"gpu=[0,1]"});
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.call(find, wants(1, 0, "gpu=3"));
    pool.call(find, wants(1, 1, "tpu=1"));
    pool.call(find, wants(1, 3, "container=1"));
    CHECK(pool.call(find, wants(1, 2, "gpu=1")) == Lines{"ann: done", "h1: launch ann/1:2 inc 1 next 1"});
    CHECK(summary(pool, "ann/1:0") == about("no host offers 2 gpu"));
    CHECK(summary(pool, "ann/1:1").find("no host offers tpu") != std::string::npos);
    CHECK(summary(pool, "ann/1:3").find("no host offers container, which needs podman") != std::string::npos);
    pool.end("h1", "ann/1:2");
    const std::string why = why_none_can_run(pool.state, Pool::key("ann/1:0").session);
    CHECK(why == about("1 without resources no host offers 2 gpu"));
    pool.hosts[0].resources = *offers_of("gpu=[0,1,2],tpu=1");
    CHECK(pool.table() == Lines{"h1: launch ann/1:0 inc 1 next 1", "h1: launch ann/1:1 inc 1 next 1"});
}

TEST_CASE(
    "resources: those of the pool are counted over all hosts, and go to the first that waits, wherever it can run") {
    Pool pool = pool_of({"", ""});
    pool.hosts[1].host_class = 2;
    pool.table();
    Policy policy;
    policy.resources = {{"licence", 2}};
    pool.rules(policy);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    const auto on = [&](int number, std::uint32_t host_class, const std::string &resources) {
        SubmitGrain s = wants(1, number, resources);
        s.demands.host_class = host_class;
        return pool.call(find, s);
    };
    CHECK(on(0, 1, "licence=1") == Lines{"ann: done", "h1: launch ann/1:0 inc 1 next 1"});
    CHECK(on(1, 2, "licence=1") == Lines{"ann: done", "h2: launch ann/1:1 inc 1 next 1"});
    CHECK(on(2, 1, "licence=2") == Lines{"ann: done"});
    CHECK(on(3, 2, "licence=1") == Lines{"ann: done"});
    CHECK(summary(pool, "ann/1:2") == about("all 2 licence use ann/1:0 ann/1:1"));
    // Enough for the later one on its host, but the earlier one waits for it.
    CHECK(pool.end("h2", "ann/1:1") == Lines{"h2: ack ann/1:1 inc 1 last 1 ended taken"});
    CHECK(summary(pool, "ann/1:2") == about("1 2 licence use ann/1:0 demands 2"));
    CHECK(pool.end("h1", "ann/1:0") ==
          Lines{"h1: ack ann/1:0 inc 1 last 1 ended taken", "h1: launch ann/1:2 inc 1 next 1"});
    // What ends on one host is used on the other at once.
    CHECK(pool.end("h1", "ann/1:2") ==
          Lines{"h1: ack ann/1:2 inc 1 last 1 ended taken", "h2: launch ann/1:3 inc 1 next 1"});
    CHECK(on(4, 1, "licence=3") == Lines{"ann: done"});
    CHECK(summary(pool, "ann/1:4").find("the pool has 2 of licence") != std::string::npos);
}

TEST_CASE("resources: what a server has found counts unless the host table says otherwise") {
    Pool pool = pool_of({"gpu=0", ""});
    const auto find_there = [&pool](const std::string &host) {
        return pool.feed(
            ServerCallIn{pool.conn(host), pool.id(host), wire::CallIn{0.5, 1 << 20, true, "", 0, "gpu=[3]"}});
    };
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    CHECK(pool.call(find, wants(1, 0, "gpu=1")) == Lines{"ann: done"});
    CHECK(!why_none_can_run(pool.state, Pool::key("ann/1:0").session).empty());
    CHECK(find_there("h1").empty());
    CHECK(find_there("h2") == Lines{"h2: launch ann/1:0 inc 1 next 1"});
    CHECK(offers_in(pool) == "gpu=[3]");
    CHECK(pool.call(find, wants(1, 1, "gpu=1")) == Lines{"ann: done"});
    // A server that connects anew may offer other resources: those of before do not count, nor does it offer none.
    pool.first_call("h2", {{"ann/1:0", 1}});
    CHECK(pool.end("h2", "ann/1:0") == Lines{"h2: ack ann/1:0 inc 1 last 1 ended taken"});
    CHECK(why_none_can_run(pool.state, Pool::key("ann/1:1").session).empty());
    CHECK(find_there("h2") == Lines{"h2: launch ann/1:1 inc 1 next 1"});
}

TEST_CASE("resources: a host of an older release gets no grain that demands some") {
    Pool pool;
    pool.add_host("old", 1, 8).resources = *offers_of("gpu=1");
    pool.forms["old"] = wire::positional_form;
    pool.table();
    pool.first_call("old");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    CHECK(pool.call(find, wants(1, 0, "gpu=1")) == Lines{"ann: done"});
    CHECK(reason(pool, "old", "ann/1:0") == "too_old");
    CHECK(pool.call(find, wants(1, 1, "")) == Lines{"ann: done", "old: launch ann/1:1 inc 1 next 1"});
}

TEST_CASE("resources: an older session's grain takes the place of a younger one's with what that has") {
    Pool pool = pool_of({"gpu=[0]"});
    pool.hosts[0].slots = 1;
    pool.table();
    const Program a = pool.begin("ann", "a"), b = pool.begin("bob", "b");
    pool.open(a, 1);
    pool.open(b, 1);
    CHECK(pool.call(b, wants(1, 0, "gpu=1")) == Lines{"bob: done", "h1: launch bob/1:0 inc 1 next 1"});
    pool.launched("h1", "bob/1:0");
    CHECK(pool.call(a, wants(1, 0, "gpu=1")) == Lines{"ann: done"});
    const Lines tried = pool.boundary("h1");
    REQUIRE(tried.size() == 1);
    CHECK(tried[0].find("launch ann/1:0") != std::string::npos);
}

TEST_CASE("resources: a demand that is none is refused") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    const Lines said = pool.call(find, wants(1, 0, "gpu"));
    REQUIRE(said.size() == 1);
    CHECK(said[0].find("resources: `gpu`") != std::string::npos);
}

TEST_CASE("a user has only so many kinds of grains waiting, however many sessions") {
    Pool pool(0);
    const Program ann = pool.begin("ann", "find"), bob = pool.begin("bob", "find");
    const auto each = static_cast<int>(limits::shapes_per_session), most = static_cast<int>(limits::shapes_per_user);
    const auto kinds = [&](int session, int first, int count) {
        std::vector<SubmitGrain> grains;
        for (int i = 0; i < count; ++i) {
            grains.push_back(Pool::grain(session, first + i));
            grains.back().demands.resources = "r" + std::to_string(first + i) + "=1";
        }
        return SubmitGrains{session, std::make_shared<const std::vector<SubmitGrain>>(grains)};
    };
    const int last = most / each + 1;
    for (int session = 1; session <= last; ++session) pool.open(ann, session);
    for (int i = 0; i < most / each; ++i) {  // without the checks of Pool, which look at all grains after each one
        const auto decision = decide(pool.state, pool.now, UserCall{pool.caller(ann), kinds(1 + i, i * each, each)});
        REQUIRE(decision.changes.size() > 1);
        Undo undo;
        for (const Change &c : decision.changes) apply(pool.state, c, undo);
    }
    CHECK(check(pool.state).empty());
    const Lines refused = pool.call(ann, kinds(last, most, 1));
    CHECK(refused.at(0).find("LIMIT") != std::string::npos);
    CHECK(refused.at(0).find("user ann") != std::string::npos);
    CHECK(pool.call(ann, kinds(last, 5, 3)).at(0) == "ann: done");  // kinds that wait in another session
    pool.open(bob, 1);
    CHECK(pool.call(bob, kinds(1, 0, 3)).at(0) == "bob: done");
    pool.gkill(ann, 1, 100);
    CHECK(pool.call(ann, kinds(last, most, 1)).at(0) == "ann: done");
}

TEST_CASE("resources: a pilot that has never called may have GPUs, and no more of others than the host table says") {
    Pool pool;
    pool.add_host("h1", 1, 8).resources = *offers_of("cpu=[0,1]");
    pool.add_host("pilot1", 1, 8).pilot = true;
    pool.add_host("h2", 1, 8);
    pool.table();
    pool.first_call("h1");
    pool.call_in("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    for (const auto &[number, demand] : {std::pair{0, "cpu=3"}, {1, "gpu=3"}, {2, "tpu=1"}})
        pool.call(find, wants(1, number, demand));
    CHECK(explanation(pool.state, pool.now, Pool::key("ann/1:0")).can_run);  // h2 may offer them
    pool.first_call("h2");
    pool.call_in("h2");
    CHECK_FALSE(explanation(pool.state, pool.now, Pool::key("ann/1:0")).can_run);
    CHECK(explanation(pool.state, pool.now, Pool::key("ann/1:1")).can_run);
    CHECK_FALSE(explanation(pool.state, pool.now, Pool::key("ann/1:2")).can_run);
    CHECK(summary(pool, "ann/1:0") == about("no host offers more than 2 of cpu"));
}
