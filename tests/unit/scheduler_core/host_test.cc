// Hosts: table, first call, supervision, return.
#include "base/confinement.h"
#include "pool.h"

using namespace dcs;
using namespace dcs::core;

TEST_CASE("a host that is not in the table is turned away") {
    Pool pool(1);
    CHECK(pool.first_call("stranger") ==
          Lines{"stranger: refused: this host is not in the scheduler's host table: add it there and reload",
                "close stranger"});
    CHECK(pool.changes.empty());
}

TEST_CASE("a host gets grains if it confines them as its table demands, and only then") {
    Pool pool(1);
    const Program ann = pool.begin("ann", "find");
    pool.open(ann, 1);
    const auto calls = [&](Rungs rungs) {
        auto call = std::make_shared<wire::FirstCall>();
        call->host = "h1";
        call->confinement = rungs;
        pool.feed(ServerFirstCall{ConnId{7000u + static_cast<unsigned>(rungs)}, call});
        return pool.state.free_slots(HostId{0});
    };
    pool.hosts[0].require_confinement = rung_filter | rung_accounts;
    pool.table();
    CHECK(pool.state.free_slots(HostId{0}) == 0);
    CHECK(calls(rung_filter) == 0);
    CHECK(calls(rung_accounts | rung_scope) == 0);
    pool.gexec(ann, 1, 0);
    CHECK(pool.at("ann/1:0").status() == GrainStatus::ready);
    calls(all_rungs);
    CHECK(pool.at("ann/1:0").status() == GrainStatus::running);
    pool.hosts[0].require_confinement = 0;
    pool.table();
    CHECK(calls(0) == 0);  // its slot is in use
    CHECK_FALSE(too_open(pool.state.hosts[0]));
}

TEST_CASE("a host whose call waits for what the backup has of it is not silent") {
    Pool pool(2);
    pool.hosts[0].interval = pool.hosts[0].alert = seconds(1);
    pool.hosts[0].limit = seconds(2);
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    REQUIRE(pool.at("ann/1:0").lessee == HostId{0});
    auto call = std::make_shared<wire::FirstCall>();
    call->host = "h1";
    call->held.push_back({wire::wire_of(Pool::key("ann/1:0")), 1, 0});
    pool.feed(ServerFirstCall{ConnId{7000}, call, {}, HandedOver{5, 1}});
    REQUIRE(pool.state.waiting_calls.size() == 1);
    SECTION("until it is believed without") {
        pool.wait(backup_patience + seconds(1));
        CHECK(pool.state.waiting_calls.empty());
        CHECK(pool.status("ann/1:0") == "running");
        CHECK(pool.at("ann/1:0").lease == 1);
    }
    SECTION("while its connection lasts") {
        pool.feed(ConnectionClosed{ConnId{7000}});
        pool.wait(seconds(3));
        CHECK(pool.state.host(HostId{0})->status == HostStatus::dead);
    }
}

TEST_CASE("silence: delinquent after the alert, dead after the limit, to the nanosecond") {
    Pool pool(1);
    const Instant called = pool.now;
    CHECK(next_deadline(pool.state) == called + seconds(30) + Duration{1});
    pool.now = called + seconds(30);
    CHECK(pool.feed(Tick{}).empty());
    CHECK(pool.changes.empty());
    pool.now = called + seconds(30) + Duration{1};
    CHECK(pool.feed(Tick{}).empty());
    CHECK(pool.state.host(HostId{0})->status == HostStatus::delinquent);
    CHECK(pool.state.free_slots(HostId{0}) == 0);
    CHECK(next_deadline(pool.state) == called + seconds(60) + Duration{1});
    pool.now = called + seconds(60);
    pool.feed(Tick{});
    CHECK(pool.state.host(HostId{0})->status == HostStatus::delinquent);
    pool.now = called + seconds(60) + Duration{1};
    CHECK(pool.feed(Tick{}) == Lines{"close h1"});
    CHECK(pool.state.host(HostId{0})->status == HostStatus::dead);
    CHECK(next_deadline(pool.state) == Instant::never());
}

TEST_CASE("a late call restores good standing") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.wait(seconds(31));
    CHECK(pool.gexec(find, 1, 0) == Lines{"ann: done"});
    CHECK(pool.call_in("h1") == Lines{"h1: launch ann/1:0 inc 1 next 1"});
    CHECK(pool.state.host(HostId{0})->status == HostStatus::active);
}

TEST_CASE("no grain is moved because of a broken connection") {
    Pool pool(2);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    pool.gexec(find, 1, 1);
    pool.gexec(find, 1, 2);
    CHECK(pool.hang_up("h1").empty());
    CHECK_FALSE(pool.touched_disk());
    CHECK(pool.wait(seconds(59)).empty());
    CHECK(pool.status("ann/1:0") == "running");
    CHECK(pool.first_call("h1", {{"ann/1:0", 1}}) == Lines{"h1: configure interval 10000ms slots 1"});
    CHECK(pool.at("ann/1:0").incarnation == 1);
}

TEST_CASE("grains of a dead host are moved, in their order, to the front") {
    Pool pool;
    pool.add_host("h1", 1, 3);
    pool.add_host("h2", 1, 1);
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    for (int i = 0; i < 4; ++i) pool.gexec(find, 1, i);
    pool.now = pool.now + seconds(60);
    CHECK(pool.first_call("h2").back() == "h2: launch ann/1:3 inc 1 next 1");
    pool.hosts.push_back(pool.hosts[1]);
    pool.hosts.back().name = "h3";
    pool.hosts.back().slots = 2;
    pool.table();
    pool.first_call("h3");
    CHECK(pool.wait(Duration{1}) ==
          Lines{"close h1", "h3: launch ann/1:0 inc 2 next 1", "h3: launch ann/1:1 inc 2 next 1"});
    CHECK(pool.queue("ann/1").front() == 2);
    CHECK(pool.at("ann/1:0").course->failures == 0);
}

TEST_CASE("a host that returns: what is still queued goes on, what was started elsewhere ends") {
    Pool pool;
    pool.add_host("h1", 1, 2);
    pool.add_host("h2", 1, 1);
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    pool.gexec(find, 1, 1);
    pool.now = pool.now + seconds(50);
    pool.first_call("h2");
    CHECK(pool.wait(seconds(11)) == Lines{"close h1", "h2: launch ann/1:0 inc 2 next 1"});
    CHECK(pool.first_call("h1", {{"ann/1:0", 1}, {"ann/1:1", 1}}) ==
          Lines{"h1: configure interval 10000ms slots 2",
                "h1: withdraw ann/1:0 inc 1 discard because it is no longer leased to this host"});
    CHECK(pool.status("ann/1:1") == "running");
    CHECK(pool.at("ann/1:1").incarnation == 1);
    // the fence: only the new lease is believed
    wire::GrainReport old = pool.end_report("ann/1:0");
    old.incarnation = 1;
    CHECK(pool.send("h1", old) == Lines{"h1: ack ann/1:0 inc 1 last 1 ended stale"});
    CHECK(pool.end("h2", "ann/1:0") == Lines{"h2: ack ann/1:0 inc 2 last 1 ended taken"});
    CHECK(pool.end("h1", "ann/1:1") == Lines{"h1: ack ann/1:1 inc 1 last 1 ended taken"});
}

TEST_CASE("a failure whose acknowledgement was lost does not count twice") {
    Pool pool;
    pool.add_host("h1", 1, 1);
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    pool.hosts[0].slots = 0;  // so that it stays in the queue
    pool.table();
    pool.end("h1", "ann/1:0", 1);
    CHECK(pool.status("ann/1:0") == "ready");
    pool.first_call("h1", {{"ann/1:0", 1}});  // it still holds the ended grain
    CHECK(pool.effects.size() == 3);
    CHECK(pool.status("ann/1:0") == "ready");
    wire::GrainReport again = pool.end_report("ann/1:0", 1);
    CHECK(pool.send("h1", again) == Lines{"h1: ack ann/1:0 inc 1 last 1 ended stale"});
    CHECK(pool.at("ann/1:0").course->failures == 1);
}

TEST_CASE("messages of an older connection of a host are not heard") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    const ConnId old = pool.conn("h1");
    pool.first_call("h1", {{"ann/1:0", 1}});
    auto r = std::make_shared<const wire::GrainReport>(pool.end_report("ann/1:0"));
    CHECK(pool.feed(ServerReport{old, HostId{0}, r}).empty());
    CHECK(pool.feed(ServerCallIn{old, HostId{0}, {}}).empty());
    CHECK(pool.feed(ConnectionClosed{old}).empty());
    CHECK(pool.changes.empty());
    CHECK(pool.state.host(HostId{0})->conn != no_connection);
}

TEST_CASE("a grain number that is used again cannot meet reports about its predecessor") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find");
    const auto start_again = [&] {
        pool.close(find, 1);
        pool.call(find, wire::CleanSession{"", 1});
        pool.open(find, 1);
        return pool.gexec(find, 1, 0);
    };
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    const wire::GrainReport old = pool.end_report("ann/1:0");
    // the report is under way while the session is closed, removed and opened again
    CHECK(start_again().back() == "h1: launch ann/1:0 inc 2 next 1");
    CHECK(pool.send("h1", old) == Lines{"h1: ack ann/1:0 inc 1 last 1 ended stale"});
    CHECK(pool.status("ann/1:0") == "running");
    pool.call(find, wire::Query{wire::QueryType::grain, "", 1, 0, -1, ""});
    CHECK(std::get<ReplyGrainDetail>(pool.effects.at(0)).rows.at(0).restarts == 0);
    // or the host is away meanwhile and comes back with the old one
    pool.hang_up("h1");
    CHECK(start_again() == Lines{"ann: done"});
    CHECK(pool.at("ann/1:0").incarnation == 0);
    Pool restarted;  // the next scheduler process does not remember any of it
    restarted.hosts = pool.hosts;
    restarted.table();
    const Program again = restarted.begin("ann", "find");
    restarted.open(again, 1);
    restarted.gexec(again, 1, 0);
    CHECK(restarted.first_call("h1", {{"ann/1:0", 2}}) ==
          Lines{"h1: configure interval 10000ms slots 1",
                "h1: withdraw ann/1:0 inc 2 discard because it is no longer leased to this host",
                "h1: launch ann/1:0 inc 3 next 1"});
    CHECK(restarted.first_call("h1", {{"ann/7:0", 4000000000u}}).size() == 4);
    CHECK(restarted.at("ann/1:0").incarnation == 4);
}

TEST_CASE("after the scheduler's start every host has its whole limit") {
    Pool pool;
    pool.add_host("h1");
    pool.table();
    CHECK(pool.state.host(HostId{0})->status == HostStatus::unknown);
    pool.wait(seconds(31));
    CHECK(pool.state.host(HostId{0})->status == HostStatus::delinquent);
    pool.wait(seconds(30));
    CHECK(pool.state.host(HostId{0})->status == HostStatus::dead);
    CHECK(pool.first_call("h1") == Lines{"h1: configure interval 10000ms slots 1"});
}

TEST_CASE("the host table is reread: hosts come, change and go") {
    Pool pool(2);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    for (int i = 0; i < 4; ++i) pool.gexec(find, 1, i);
    pool.hosts[1].slots = 2;
    CHECK(pool.table() == Lines{"h2: configure interval 10000ms slots 2", "h2: launch ann/1:2 inc 1 next 1"});
    CHECK(pool.table().empty());
    const HostConfig gone = pool.hosts[0];
    pool.hosts.erase(pool.hosts.begin());
    CHECK(pool.table() == Lines{"h1: refused: this host was removed from the scheduler's host table", "close h1"});
    CHECK(pool.status("ann/1:0") == "ready");
    CHECK(pool.first_call("h1", {{"ann/1:0", 1}}).size() == 2);
    CHECK(pool.state.hosts.size() == 2);  // ids are stable
    pool.hosts.push_back(gone);
    pool.table();
    CHECK(pool.first_call("h1", {{"ann/1:0", 1}}) == Lines{"h1: configure interval 10000ms slots 1"});
    CHECK(pool.status("ann/1:0") == "running");
    pool.hosts[1].slots = 0;  // h1 out of service: grains are given back with their checkpoints
    CHECK(pool.table() == Lines{"h1: configure interval 10000ms slots 0",
                                "h1: withdraw ann/1:0 inc 1 because the host was taken out of service"});
}

TEST_CASE("of many grains the details of so many are read at once as have few parameters together") {
    Pool pool;
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    for (int i = 0; i < 7; ++i) pool.call(find, Pool::grain(1, i, 0, std::string(100'000, 'x')));
    pool.call(find, wire::Query{wire::QueryType::grain, "", 1, 0, -1, "", "", {1, 2, 3, 4, 5, 6}});
    CHECK(std::get<ReplyGrainDetail>(pool.effects.at(0)).rows.size() == 2);
}

TEST_CASE("queries show rows to each party and details to the owner") {
    Pool pool(2);
    const Program find = pool.begin("ann", "find"), bob = pool.begin("bob", "x");
    pool.open(find, 1);
    for (int i = 0; i < 3; ++i) pool.gexec(find, 1, i);
    pool.end("h1", "ann/1:0");
    const auto ask = [&](wire::Query q) { return pool.call(bob, q); };
    CHECK(ask({wire::QueryType::hosts, "", -1, -1, -1, ""}) ==
          Lines{"bob: rows hosts 2; h1 active slots 1 running 1; h2 active slots 1 running 1"});
    CHECK(ask({wire::QueryType::sessions, "", -1, -1, -1, ""}) ==
          Lines{"bob: rows sessions 1; ann/1 active running 2 finished 1"});
    CHECK(ask({wire::QueryType::sessions, "bob", -1, -1, -1, ""}) == Lines{"bob: rows"});
    CHECK(ask({wire::QueryType::grains, "ann", 1, -1, -1, "running"}) ==
          Lines{"bob: rows grains 2; 1 running on h2 inc 1; 2 running on h1 inc 1"});
    CHECK(ask({wire::QueryType::grains, "ann", 1, -1, 1, ""}) == Lines{"bob: rows grains 1; 2 running on h1 inc 1"});
    CHECK(ask({wire::QueryType::grains, "ann", -1, -1, -1, "finished"}) ==
          Lines{"bob: rows grains 1; 0 finished on h1 inc 1"});
    CHECK(ask({wire::QueryType::grains, "ann", 1, -1, -1, "lost"}).at(0).find("INVALID") != std::string::npos);
    CHECK(ask({wire::QueryType::grains, "ann", 2, -1, -1, ""}).at(0).find("SESSION_UNKNOWN") != std::string::npos);
    CHECK(ask({wire::QueryType::grain, "ann", 1, 0, -1, ""}).at(0).find("REFUSED") != std::string::npos);
    CHECK(pool.call(find, wire::Query{wire::QueryType::grain, "", 1, 0, -1, ""}) ==
          Lines{"ann: detail of ann/1:0 finished"});
    CHECK(pool.call(find, wire::Query{wire::QueryType::grain, "", 1, 9, -1, ""}).at(0).find("GRAIN_UNKNOWN") !=
          std::string::npos);
    CHECK(pool.call(find, wire::Query{wire::QueryType::grain, "", 1, 0, -1, "", "", {2, 9, 1}}) ==
          Lines{"ann: detail of ann/1:0 finished, 2 running, 1 running"});
    CHECK(pool.call(find, wire::Fetch{"", 1, 0, wire::Stream::out, 3, 0}) ==
          Lines{"ann: piece of ann/1:0 at 3 max 262144"});
    CHECK(pool.changes.empty());
    pool.call(bob, wire::Query{wire::QueryType::system, "", -1, -1, -1, ""});
    const auto *reply = std::get_if<Reply>(&pool.effects.at(0));
    REQUIRE(reply);
    const wire::SystemRow &row = std::get<wire::QueryReply>(reply->message).system;
    CHECK(row.hosts == 2);
    CHECK(row.hosts_active == 2);
    CHECK(row.sessions_active == 1);
    CHECK(row.running == 2);
    CHECK(row.ready == 0);
}

TEST_CASE("long lists of grains come in pages") {
    Pool pool(0);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    const int total = static_cast<int>(limits::query_rows) + 5;
    for (int i = 0; i < total; ++i) {
        Grain g;
        g.as<core::Ready>().queue_position = i;
        SessionInfo info = pool.session("ann/1").info;
        info.queue_back = i + 1;
        Undo undo;
        apply(pool.state, SetSession{{"ann", 1}, info}, undo);
        apply(pool.state, SetGrain{{{"ann", 1}, i}, g}, undo);
    }
    const auto page = [&](std::int32_t after) {
        pool.call(find, wire::Query{wire::QueryType::grains, "", 1, -1, after, "ready"});
        return std::get<wire::QueryReply>(std::get<Reply>(pool.effects.at(0)).message);
    };
    const wire::QueryReply first = page(-1);
    CHECK(first.grains.size() == limits::query_rows);
    CHECK(first.more);
    const wire::QueryReply second = page(first.grains.back().grain);
    CHECK(second.grains.size() == 5);
    CHECK_FALSE(second.more);
}

TEST_CASE("a host that was set to 0 slots while it was away is told to give up what it kept") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find"), root = pool.stranger("root", true);
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    pool.hang_up("h1");
    wire::SetHost c;
    c.host = "h1";
    c.slots = 0;
    CHECK(pool.set(root, c) == Lines{"root: done"});
    CHECK(pool.first_call("h1", {{"ann/1:0", 1}}) ==
          Lines{"h1: configure interval 10000ms slots 0",
                "h1: withdraw ann/1:0 inc 1 because the host was taken out of service"});
}

TEST_CASE("a host that leaves the table while its addresses are checked comes back with all its time") {
    for (const bool answered : {false, true}) {
        Pool pool;
        pool.add_host("h1").check = {"h1"};
        pool.table();
        pool.first_call("h1");
        const Program find = pool.begin("ann", "find");
        pool.open(find, 1);
        pool.gexec(find, 1, 0);
        pool.wait(seconds(61));
        if (answered) pool.probed("h1", true);
        const std::vector<HostConfig> hosts = pool.hosts;
        pool.hosts.clear();
        pool.table();
        pool.wait(seconds(200));
        pool.hosts = hosts;
        pool.table();
        CHECK(next_deadline(pool.state) == pool.now + seconds(30) + Duration{1});
        CHECK(pool.state.host(HostId{0})->status == HostStatus::unknown);
    }
}

TEST_CASE("a limit that is raised while addresses are checked counts from the last contact") {
    Pool pool;
    pool.add_host("h1").check = {"h1"};
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find"), root = pool.stranger("root", true);
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    const Instant called = pool.now;
    pool.wait(seconds(61));
    wire::SetHost c;
    c.host = "h1";
    c.limit_s = 500;
    c.extended_s = 500;
    pool.set(root, c);
    pool.wait(seconds(20));  // the answer to the probe is lost
    CHECK(pool.status("ann/1:0") == "running");
    CHECK(next_deadline(pool.state) == called + seconds(500) + Duration{1});
}
