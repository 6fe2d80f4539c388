// Hosts whose server is known to have ended, and hosts that never called.
#include "base/confinement.h"
#include "pool.h"
using namespace dcs;
using namespace dcs::core;

TEST_CASE("a host whose server was killed is waited for as long as a restart takes, not for its limit") {
    Pool pool(2);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    const ConnId link = pool.conn("h1");
    const auto place = [&] { return pool.state.host_name(pool.at("ann/1:0").runs_on()); };
    REQUIRE(place() == "h1");
    SECTION("a closed link alone moves nothing") {
        pool.hang_up("h1");
        pool.wait(seconds(55));
        CHECK(place() == "h1");
    }
    SECTION("its process has ended: one interval") {
        pool.hang_up("h1");
        CHECK(pool.feed(ServerEnded{link}).empty());
        pool.wait(seconds(10));
        CHECK(place() == "h1");
        pool.wait(seconds(1));
        CHECK(pool.state.host(HostId{0})->status == HostStatus::dead);
        CHECK(place() == "h2");
        CHECK(pool.at("ann/1:0").incarnation == 2);
    }
    SECTION("the kernel tells before the link is seen to close, and reports of the dead are still read") {
        const wire::GrainReport late = pool.report("ann/1:0");
        pool.feed(ServerEnded{link});
        pool.send("h1", late);
        pool.hang_up("h1");
        pool.wait(seconds(11));
        CHECK(place() == "h2");
    }
    SECTION("it was started again in time, and goes on with its grain") {
        pool.hang_up("h1");
        pool.feed(ServerEnded{link});
        pool.wait(seconds(9));
        pool.first_call("h1", {{"ann/1:0", 1}});
        pool.wait(seconds(20));
        CHECK(place() == "h1");
        CHECK(pool.at("ann/1:0").incarnation == 1);
        CHECK(pool.state.host(HostId{0})->status == HostStatus::active);
    }
    SECTION("started too late it has its grain back if no other party took it") {
        pool.hosts[1].slots = 0;
        pool.table();
        pool.hang_up("h1");
        pool.feed(ServerEnded{link});
        pool.wait(seconds(11));
        CHECK(pool.status("ann/1:0") == "ready");
        pool.first_call("h1", {{"ann/1:0", 1}});
        CHECK(pool.status("ann/1:0") == "running");
        CHECK(pool.at("ann/1:0").incarnation == 1);
    }
    SECTION("the end of an older process says nothing about the one that has called since") {
        pool.first_call("h1", {{"ann/1:0", 1}});
        pool.feed(ServerEnded{link});
        pool.hang_up("h1");
        pool.feed(ServerEnded{link});
        pool.wait(seconds(29));
        CHECK(place() == "h1");
    }
    SECTION("who calls in seldom is restarted as slowly") {
        pool.hosts[0].interval = seconds(30);
        pool.table();
        pool.hang_up("h1");
        pool.feed(ServerEnded{link});
        pool.wait(seconds(20));
        pool.call_in("h2");
        pool.wait(seconds(10));
        CHECK(place() == "h1");
        pool.wait(seconds(1));
        CHECK(place() == "h2");
    }
}

TEST_CASE("a host that never called has no figures, also when it was given up") {
    Pool pool;
    pool.add_host("h1", 1, 1);
    pool.table();
    const auto row = [&] {
        const Program look = pool.begin("ann", "look");
        return pool.answer<wire::QueryReply>(look, wire::Query{wire::QueryType::hosts}).hosts.at(0);
    };
    pool.wait(seconds(200));
    REQUIRE(pool.state.host(HostId{0})->status == HostStatus::dead);
    CHECK((row().last_call_in_s == -1 && row().free_memory_kb == -1 && row().confinement.empty()));
    pool.first_call("h1");
    CHECK((row().last_call_in_s == 0 && row().free_memory_kb == -1));
    pool.call_in("h1", 42);
    CHECK(row().free_memory_kb == 42);
}

TEST_CASE("a host out of the table ends what runs elsewhere, once its copy can count no more") {
    Pool pool(2);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    for (int i = 0; i < 2; ++i) pool.gexec(find, 1, i);
    pool.end("h2", "ann/1:1");
    const HostConfig gone = pool.hosts[0];
    pool.hosts.erase(pool.hosts.begin());
    CHECK(pool.table() == Lines{"h1: refused: this host was removed from the scheduler's host table", "close h1",
                                "h2: launch ann/1:0 inc 2 next 1"});
    CHECK(pool.first_call("h1", {{"ann/1:0", 1, 5000}}).size() == 2);  // a mistake may be put right
    pool.now = pool.now + gone.limit;
    const Lines lines = pool.first_call("h1", {{"ann/1:0", 1, 5000}});
    REQUIRE(lines.size() == 3);
    CHECK(lines[0] == "h1: withdraw ann/1:0 inc 1 discard because its host is no longer in the scheduler's host table");
    CHECK(pool.first_call("h9", {{"ann/1:0", 1}}).size() == 2);  // perhaps of another pool
}

TEST_CASE("a host whose call waits for what the backup has of it, and whose server ends") {
    Pool pool(1);
    pool.hosts[0].limit = pool.hosts[0].alert = seconds(600);
    pool.table();
    pool.hang_up("h1");
    auto call = std::make_shared<wire::FirstCall>();
    call->host = "h1";
    pool.feed(ServerFirstCall{ConnId{7000}, call, {}, HandedOver{5, 1}});
    REQUIRE(pool.state.waiting_calls.size() == 1);
    const bool kernel_first = GENERATE(true, false);
    if (kernel_first) pool.feed(ServerEnded{ConnId{7000}});
    pool.feed(ConnectionClosed{ConnId{7000}});
    if (!kernel_first) pool.feed(ServerEnded{ConnId{7000}});
    CHECK(pool.state.waiting_calls.empty());
    pool.wait(seconds(35));
    CHECK(pool.state.host(HostId{0})->status == HostStatus::dead);
}
