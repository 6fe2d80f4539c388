// Grains that wait on a host for a slot: how many, which, and when they come back.
#include "unit/scheduler_core/pool.h"

using namespace dcs;
using namespace dcs::core;

namespace {

std::string name(const std::string &session, int grain) { return session + ":" + std::to_string(grain); }

// Two slots on each host, and a queue of ann's.
struct AheadStage {
    Pool pool;
    Program ann;
    int ended = 0;
    explicit AheadStage(int hosts, int grains = 200, wire::Form form = wire::newest_form) : pool(0) {
        for (int i = 1; i <= hosts; ++i) {
            pool.add_host("h" + std::to_string(i), 1, 2);
            pool.forms["h" + std::to_string(i)] = form;
        }
        pool.table();
        for (int i = 1; i <= hosts; ++i) pool.first_call("h" + std::to_string(i));
        ann = pool.begin("ann", "find");
        pool.open(ann, 1);
        for (int i = 0; i < grains; ++i) pool.gexec(ann, 1, i);
    }
    std::size_t leased(int host) { return pool.state.running[static_cast<std::size_t>(host)].size(); }
    std::size_t ahead(int host) { return pool.state.ahead[static_cast<std::size_t>(host)].size(); }
    // The oldest lease there ends.
    void end_one(const std::string &host) {
        const auto &there = pool.state.running[static_cast<std::size_t>(pool.id(host))];
        REQUIRE(!there.empty());
        const GrainKey first = *there.begin();
        pool.end(host, name(to_text(first.session), first.grain));
        ++ended;
    }
    // So many a second, until it is known.
    void learn(const std::string &host, int each_second) {
        for (int i = 0; i < 2 * each_second + 2; ++i) {
            pool.now = pool.now + Duration{seconds(1).ns / each_second};
            end_one(host);
        }
    }
    std::size_t withdrawn() {
        std::size_t n = 0;
        for (const Effect &e : pool.effects)
            if (const auto *send = std::get_if<SendServer>(&e))
                n += std::holds_alternative<wire::Withdraw>(send->message);
        return n;
    }
    // What was called back with the last call comes back; the oldest two have started.
    void give_back(const std::string &host) {
        std::vector<GrainKey> keys;
        for (const Effect &e : pool.effects)
            if (const auto *send = std::get_if<SendServer>(&e))
                if (const auto *end = std::get_if<wire::Withdraw>(&send->message)) {
                    CHECK(end->only_if_waiting);
                    keys.push_back(wire::key_of(end->key));
                }
        REQUIRE(keys.size() > 2);
        keys.resize(keys.size() - 2);
        for (const GrainKey &key : keys) pool.launched(host, name(to_text(key.session), key.grain), Code::refused);
    }
};

}  // namespace

TEST_CASE("a grain that waits on its host counts as ready in every row") {
    AheadStage s(1, 40);
    s.learn("h1", 10);
    REQUIRE(s.ahead(0) > 2);
    const auto sessions = s.pool.answer<wire::QueryReply>(s.ann, wire::Query{wire::QueryType::sessions});
    REQUIRE(sessions.sessions.size() == 1);
    const wire::SessionRow &row = sessions.sessions[0];
    CHECK(row.ready + row.running + row.finished == 40);
    wire::Query query{wire::QueryType::grains};
    query.session = 1;
    for (const auto &[status, count] : {std::pair{"ready", row.ready}, {"running", row.running}}) {
        query.status = status;
        const auto grains = s.pool.answer<wire::QueryReply>(s.ann, query).grains;
        CHECK(static_cast<std::int32_t>(grains.size()) == count);
        for (const wire::GrainRow &grain : grains) {
            CHECK(grain.state == status);
            CHECK(grain.host == (grain.state == "running" ? "h1" : ""));
        }
    }
    CHECK(row.running == static_cast<std::int32_t>(s.leased(0) - s.ahead(0)));
}

TEST_CASE("a grain that is killed while it waits on its host has never started") {
    AheadStage s(1, 40);
    s.learn("h1", 10);
    REQUIRE(s.ahead(0) > 0);
    const GrainKey key = *s.pool.state.ahead[0].begin();
    s.pool.gkill(s.ann, 1, key.grain);
    const Grain &grain = *s.pool.state.grain(key);
    CHECK(grain.status() == GrainStatus::killed);
    CHECK(grain.incarnation == grain.course->skipped);  // no start is counted
}

TEST_CASE("a host is given as many grains ahead as end there in a quarter of a second") {
    AheadStage s(1);
    CHECK(s.leased(0) == 2);
    s.learn("h1", 40);
    CHECK(s.leased(0) >= 11);  // two in its slots; which ones have started its server has not said yet
    CHECK(s.leased(0) <= 12);
    for (const GrainKey &key : s.pool.state.ahead[0]) CHECK(s.pool.state.grain(key)->lessee == s.pool.id("h1"));
    const auto hosts = s.pool.answer<wire::QueryReply>(s.ann, wire::Query{wire::QueryType::hosts});
    REQUIRE(hosts.hosts.size() == 1);
    CHECK(hosts.hosts[0].running == 2);
}

TEST_CASE("a host with long grains is given none ahead, nor is a server of release 0.1") {
    AheadStage slow(1);
    for (int i = 0; i < 20; ++i) {
        slow.pool.now = slow.pool.now + seconds(2);
        slow.end_one("h1");
    }
    CHECK(slow.leased(0) == 2);
    AheadStage old(1, 200, wire::positional_form);
    old.learn("h1", 20);
    CHECK(old.leased(0) == 2);
}

TEST_CASE("a host whose grains became long returns what waits there once, and that is no move") {
    AheadStage s(1);
    s.learn("h1", 10);
    REQUIRE(s.ahead(0) > 2);
    s.pool.now = s.pool.now + seconds(15);
    while (s.ahead(0) > 0) {
        const GrainKey key = *s.pool.state.ahead[0].begin();
        s.pool.launched("h1", name(to_text(key.session), key.grain), Code::limit);
        CHECK(s.pool.state.grain(key)->course->moves.get().empty());
    }
    CHECK(s.leased(0) == 2);
    CHECK(s.pool.state.hosts[0].held_back.empty());
    s.learn("h1", 10);
    CHECK(s.ahead(0) > 2);
}

TEST_CASE("only grains of one core that ask for nothing else go ahead") {
    AheadStage s(1, 60);
    SubmitGrain wide = Pool::grain(1, 500);
    wide.demands.cores = 2;
    s.pool.call(s.ann, wide);
    for (int i = 501; i < 540; ++i) s.pool.gexec(s.ann, 1, i);
    while (s.pool.queue("ann/1").size() > 40) s.learn("h1", 10);
    for (int i = 0; i < 30 && s.leased(0) > 2; ++i) {
        s.pool.now = s.pool.now + milliseconds(100);
        s.end_one("h1");
        for (const GrainKey &key : s.pool.state.ahead[0]) CHECK(s.pool.state.grain(key)->demands->cores <= 1);
        if (s.pool.status("ann/1:500") == "ready") continue;
        CHECK(s.pool.state.ahead[0].count(Pool::key("ann/1:500")) == 0);
    }
}

TEST_CASE("what waits ahead comes back for an older session") {
    AheadStage s(1);
    Program bob = s.pool.begin("bob", "late");
    s.pool.open(bob, 7);  // younger than ann's
    for (int i = 0; i < 60; ++i) s.pool.gexec(bob, 7, i);
    while (!s.pool.queue("ann/1").empty()) s.learn("h1", 20);
    s.learn("h1", 20);
    const auto &ahead = s.pool.state.ahead[0];
    for (int i = 0; i < 40 && !ahead.empty() && ahead.begin()->session.user == "ann"; ++i) s.end_one("h1");
    REQUIRE(s.ahead(0) > 0);
    s.pool.now = s.pool.now + seconds(2);
    s.pool.gexec(s.ann, 1, 1000);
    CHECK(s.withdrawn() > 0);
    s.give_back("h1");
    CHECK(s.pool.status("ann/1:1000") == "running");
    CHECK(s.pool.state.hosts[0].held_back.empty());
}

TEST_CASE("what waits ahead comes back for a slot that has nothing to do") {
    AheadStage s(2, 60);
    s.learn("h1", 20);
    REQUIRE(s.ahead(0) > 4);
    while (!s.pool.queue("ann/1").empty()) s.end_one("h1");
    const std::size_t before = s.ahead(0);
    REQUIRE(before > 4);
    s.pool.now = s.pool.now + seconds(2);
    s.end_one("h2");
    CHECK(s.withdrawn() == (before + 1) / 2);
    s.give_back("h1");
    CHECK(s.leased(1) == 2);
}

TEST_CASE("a host that is drained gives back what waits there") {
    AheadStage s(1);
    s.learn("h1", 10);
    const std::size_t before = s.ahead(0);
    REQUIRE(before > 2);
    wire::SetHost drain;
    drain.host = "h1";
    drain.drained = 1;
    s.pool.set(s.pool.stranger("root", true), drain);
    CHECK(s.withdrawn() == before);
    s.give_back("h1");
    CHECK(s.leased(0) == 2);
}

TEST_CASE("what waits ahead takes its session's new place") {
    AheadStage s(1);
    Program bob = s.pool.begin("bob", "late");
    s.pool.open(bob, 7);  // younger than ann's
    s.learn("h1", 10);
    s.pool.gexec(bob, 7, 1);
    const std::size_t before = s.ahead(0);
    REQUIRE(before > 2);
    s.pool.call(s.ann, wire::SetSession{"", 1, 5});
    CHECK(s.withdrawn() == before);
    s.give_back("h1");
    CHECK(s.pool.status("bob/7:1") == "running");
}
