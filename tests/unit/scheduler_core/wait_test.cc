// d_gwait and d_gkill: the cursor, holes, parked calls.
#include "pool.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::core;

namespace {
struct WaitStage {
    Pool pool{4};
    Program find = pool.begin("ann", "find");
    WaitStage() {
        pool.open(find, 1);
        for (int i = 0; i < 4; ++i) pool.gexec(find, 1, i);
    }
    Lines finish(int i) { return pool.end("h" + std::to_string(i + 1), "ann/1:" + std::to_string(i)); }
};
}  // namespace

TEST_CASE("results come in the order in which the grains finished, and again if asked again") {
    WaitStage s;
    s.finish(2);
    s.finish(0);
    CHECK(s.pool.gwait(s.find, 1, 0) == Lines{"ann: result ann/1:2 completed 2 sent 1 out 6"});
    CHECK(s.pool.session("ann/1").info.sent == 0);
    CHECK(s.pool.gwait(s.find, 1, 0) == Lines{"ann: result ann/1:2 completed 2 sent 1 out 6"});
    CHECK(s.pool.changes.empty());  // handed out before: nothing new to record
    CHECK(s.pool.gwait(s.find, 1, 1) == Lines{"ann: result ann/1:0 completed 2 sent 2 out 6"});
    CHECK(s.pool.session("ann/1").info.sent == 1);
    CHECK(s.pool.touched_disk());
    CHECK(s.pool.gwait(s.find, 1, 2).at(0).find("NOTHING_YET") != std::string::npos);
    CHECK(s.pool.session("ann/1").info.sent == 2);
    CHECK(s.pool.gwait(s.find, 1, 3).at(0).find("INVALID") != std::string::npos);
    CHECK(s.pool.gwait(s.find, 1, -1).at(0).find("INVALID") != std::string::npos);
}

TEST_CASE("a repeated run that has all of its results gets no more where the earlier run found none left") {
    WaitStage s;
    const auto has_all = [&s](int next, bool block = true) {
        return s.pool.call(s.find, wire::Gwait{1, next, block, true});
    };
    const auto nothing_left = [](const Lines &lines) {
        return lines.size() == 1 && lines[0].find("NOTHING_LEFT") != std::string::npos;
    };
    s.finish(0);
    s.finish(1);
    s.pool.gwait(s.find, 1, 0);
    s.pool.gwait(s.find, 1, 1);
    s.pool.gwait(s.find, 1, 2);   // both are acknowledged
    s.pool.gexec(s.find, 1, 4);   // decided on after two results: the earlier run's next round
    s.pool.end("h1", "ann/1:4");  // before the rest of the first one
    CHECK(nothing_left(has_all(2)));
    CHECK(has_all(1) == Lines{"ann: result ann/1:1 completed 3 sent 2 out 6"});  // submitted before
    CHECK(s.pool.gwait(s.find, 1, 2) == Lines{"ann: result ann/1:4 completed 3 sent 3 out 6"});
    // The rest runs, and was submitted when there were no results.
    CHECK(has_all(3, false).at(0).find("NOTHING_YET") != std::string::npos);
    s.finish(2);
    s.finish(3);
    s.pool.gwait(s.find, 1, 3);
    s.pool.gwait(s.find, 1, 4);
    s.pool.gwait(s.find, 1, 5);
    s.pool.gexec(s.find, 1, 5);
    CHECK(s.pool.status("ann/1:5") == "running");
    CHECK(nothing_left(has_all(5)));
    CHECK(s.pool.session("ann/1").info.sent == 5);
    CHECK(s.pool.gwait(s.find, 1, 5, true).empty());  // a first run waits for it
}

TEST_CASE("a parked call is answered when a grain finishes, once") {
    WaitStage s;
    CHECK(s.pool.gwait(s.find, 1, 0, true).empty());
    CHECK_FALSE(s.pool.touched_disk());
    CHECK(s.pool.repeat(s.find, wire::Gwait{1, 0, true}).empty());  // the same call: one waiter
    CHECK(s.pool.session("ann/1").waiters.size() == 1);
    CHECK(s.finish(3) ==
          Lines{"h4: ack ann/1:3 inc 1 last 1 ended taken", "ann: result ann/1:3 completed 1 sent 1 out 6"});
    CHECK(s.finish(1) == Lines{"h2: ack ann/1:1 inc 1 last 1 ended taken"});
    CHECK(s.pool.session("ann/1").waiters.empty());
}

TEST_CASE("a broken connection takes its parked calls along and nothing else") {
    WaitStage s;
    Program second = s.find;
    second.conn = ConnId{77};
    s.pool.gwait(s.find, 1, 0, true);
    s.pool.gwait(second, 1, 0, true);
    CHECK(s.pool.feed(ConnectionClosed{s.find.conn}).empty());
    CHECK_FALSE(s.pool.touched_disk());
    REQUIRE(s.pool.session("ann/1").waiters.size() == 1);
    CHECK(s.pool.session("ann/1").waiters[0].conn == ConnId{77});
    CHECK(s.pool.session("ann/1").counts[static_cast<int>(GrainStatus::running)] == 4);
}

TEST_CASE("sent_reset shows the same results in the same order") {
    WaitStage s;
    for (const int i : {2, 0, 3, 1}) s.finish(i);
    Lines first, second;
    for (int i = 0; i < 4; ++i) first.push_back(s.pool.gwait(s.find, 1, i).at(0));
    const Program again = s.pool.begin("ann", "find");
    CHECK(s.pool.open(again, 1, wire::OpenMode::resume, true) == Lines{"ann: opened resumed completed 4"});
    for (int i = 0; i < 4; ++i) second.push_back(s.pool.gwait(again, 1, i).at(0));
    CHECK(first == second);
    CHECK(s.pool.gwait(again, 1, 4).at(0).find("NOTHING_LEFT") != std::string::npos);
    s.pool.open(again, 1, wire::OpenMode::resume);
    CHECK(s.pool.silent() == false);
    CHECK(s.pool.session("ann/1").info.sent == 4);
}

TEST_CASE("a grain killed before it was reported leaves the order as a hole") {
    WaitStage s;
    s.finish(0);
    s.finish(1);
    s.finish(2);
    CHECK(s.pool.gkill(s.find, 1, 1) == Lines{"ann: done"});
    CHECK(s.pool.session("ann/1").results.grains() == std::vector<GrainNumber>{0, -1, 2});
    CHECK(s.pool.gwait(s.find, 1, 0) == Lines{"ann: result ann/1:0 completed 2 sent 1 out 6"});
    CHECK(s.pool.gwait(s.find, 1, 1) == Lines{"ann: result ann/1:2 completed 2 sent 3 returned 2 out 6"});
    // what was handed out stays in the order, also before it is acknowledged
    CHECK(s.pool.gkill(s.find, 1, 2) == Lines{"ann: done"});
    CHECK(s.pool.changes.empty());
    CHECK(s.pool.status("ann/1:2") == "finished");
    // and after a replay began again
    const Program again = s.pool.begin("ann", "find");
    s.pool.open(again, 1, wire::OpenMode::resume, true);
    s.pool.gkill(again, 1, 0);
    CHECK(s.pool.gwait(again, 1, 0) == Lines{"ann: result ann/1:0 completed 2 sent 1 out 6"});
}

TEST_CASE("a grain that was forgotten and finished again is one result of those returned") {
    WaitStage s;
    for (const int i : {0, 1, 2}) s.finish(i);
    for (int i = 0; i < 3; ++i) s.pool.gwait(s.find, 1, i);
    s.pool.call(s.pool.stranger("ann"), wire::RestartGrain{"ann", 1, 1, true, 0});
    REQUIRE(s.pool.session("ann/1").results.grains() == std::vector<GrainNumber>{0, -1, 2});
    s.pool.end(s.pool.state.host(s.pool.at("ann/1:1").lessee)->config->name, "ann/1:1");
    s.finish(3);
    const Program again = s.pool.begin("ann", "find");
    s.pool.open(again, 1, wire::OpenMode::resume, true);
    CHECK(s.pool.gwait(again, 1, 0) == Lines{"ann: result ann/1:0 completed 4 sent 1 out 6"});
    CHECK(s.pool.gwait(again, 1, 1) == Lines{"ann: result ann/1:2 completed 4 sent 3 returned 2 out 6"});
    CHECK(s.pool.call(again, wire::GwaitMany{1, 3, 9, false}) ==
          Lines{"ann: results of ann/1: 1 sent 4 returned 3 3 sent 5 returned 4"});
    CHECK(s.pool.gwait(again, 1, 5).at(0).find("NOTHING_LEFT") != std::string::npos);
    wire::Query query;
    query.type = wire::QueryType::sessions;
    CHECK(s.pool.answer<wire::QueryReply>(again, query).sessions.at(0).sent == 4);
}

TEST_CASE("a run in which failed grains begin again gets no result of theirs from before") {
    Pool pool(0);
    pool.add_host("h1", 1, 6);
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1, wire::OpenMode::resume);
    for (const int grain : {0, 1, 2, 3, 4}) {
        SubmitGrain call = Pool::grain(1, grain);
        call.demands.attempts = 1;
        if (grain == 3) call.files.outputs = {{wire::FileRole::output, "made", "", 0, ""}};
        pool.call(find, call);
    }
    for (const int grain : {0, 1, 2, 3, 4}) pool.end("h1", "ann/1:" + std::to_string(grain), grain == 1 || grain == 4);
    const auto takes = [&](int next, int failed_from) {
        wire::GwaitMany call{1, next, 9, false};
        call.failed_from = failed_from;
        return pool.call(find, call);
    };
    CHECK(takes(0, 4) == Lines{"ann: results of ann/1: 0 sent 1 2 sent 3 returned 2 4 sent 5 returned 3"});
    CHECK(takes(0, 5) == Lines{"ann: results of ann/1: 0 sent 1 2 sent 3 returned 2"});
    CHECK(takes(3, 5).at(0).find("NOTHING_LEFT") != std::string::npos);
    CHECK(takes(0, -1).at(0).find("INVALID") != std::string::npos);
    wire::Gwait one{1, 1, false};
    one.failed_from = 5;
    CHECK(pool.call(find, one).at(0).find("ann/1:2") != std::string::npos);
    wire::GwaitMany all{1, 1, 9, false};
    all.failed_from = 2'000'000'000;
    CHECK(decide(pool.state, pool.now, UserCall{pool.caller(find), all}).looked_at >= 3);
}

TEST_CASE("killing the last grain tells parked calls that nothing is left") {
    WaitStage s;
    for (int i = 0; i < 3; ++i) s.pool.gkill(s.find, 1, i);
    s.pool.gwait(s.find, 1, 0, true);
    CHECK(s.pool.silent());
    CHECK(s.pool.gkill(s.find, 1, 3) ==
          Lines{"h4: withdraw ann/1:3 inc 1 discard because killed by its control program", "ann: done",
                "ann: error NOTHING_LEFT: session ann/1 has no unfinished grain and every result was handed "
                "out"});
    CHECK(s.pool.gkill(s.find, 1, 9) == Lines{"ann: error GRAIN_UNKNOWN: session ann/1 has no grain 9"});
}

TEST_CASE("a killed grain makes room for the next") {
    WaitStage s;
    s.pool.gexec(s.find, 1, 4);
    CHECK(s.pool.gkill(s.find, 1, 1) ==
          Lines{"h2: withdraw ann/1:1 inc 1 discard because killed by its control program", "ann: done",
                "h2: launch ann/1:4 inc 1 next 1"});
}

TEST_CASE("cannot_run counts what is configured, not what is alive") {
    Pool pool;
    pool.add_host("h1", 1);
    pool.add_host("h2", 2).users = {"bob"};
    pool.table();
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    CHECK(pool.gwait(find, 1, 0, true).at(0).find("NOTHING_LEFT") != std::string::npos);
    pool.gexec(find, 1, 0, 2);
    CHECK(pool.gwait(find, 1, 0, true) ==
          Lines{"ann: error CANNOT_RUN: no host can run the remaining grains of session ann/1; for grain 0: 2 hosts "
                "configured, 1 of another class, 1 not for this user"});
    pool.gexec(find, 1, 1, 3);  // h1 could run this one, though no party has called yet
    CHECK(pool.gwait(find, 1, 0, true).empty());
    // the table changes: h1 is gone
    pool.hosts.erase(pool.hosts.begin());
    CHECK(pool.table() ==
          Lines{"ann: error CANNOT_RUN: no host can run the remaining grains of session ann/1; for grain 0: "
                "1 host configured, 1 not for this user"});
}

TEST_CASE("what waits is looked through once for all parked waits, and what that takes is counted") {
    Pool pool;
    pool.add_host("h1", 1).memory_mb = 100;
    pool.add_host("h2", 1).memory_mb = 1000;
    pool.table();
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    SubmitGrain large = Pool::grain(1, 0), later = Pool::grain(1, 100);
    large.demands.memory_mb = 200;
    for (int i = 0; i < 100; ++i) pool.call(find, (large.grain = i, large));
    later.demands.thrash = 2'000'000'000;
    pool.call(find, later);
    pool.hosts.pop_back();
    pool.table();
    for (int i = 0; i < 10; ++i) CHECK(pool.call(find, wire::Gwait{1, 0, true}).empty());
    REQUIRE(pool.session("ann/1").waiters.size() == 10);
    pool.gkill(find, 1, 5);
    CHECK(pool.session("ann/1").waiters.size() == 10);  // h1 may run the last one some day
    CHECK(decide(pool.state, pool.now, AnswerWaiters{{"ann", 1}}).looked_at == 100);
}

TEST_CASE("a parked wait hears it when a running grain comes back and no host could run it again") {
    Pool pool;
    pool.add_host("h1", 1).slots = 2;
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    SubmitGrain wide = Pool::grain(1, 0);
    wide.demands.cores = 2;
    pool.call(find, wide);
    CHECK(pool.gwait(find, 1, 0, true).empty());
    pool.hosts[0].slots = 1;  // it runs on, but could not be started any more
    CHECK(pool.table() == Lines{"h1: configure interval 10000ms slots 1"});
    CHECK(
        pool.first_call("h1").back() ==
        about("ann error CANNOT_RUN no host run remaining grains session ann/1 grain 0 1 host configured 1 few cores"));
}

TEST_CASE("a grain that asks for more memory than any host has is refused when the hosts have said what they have") {
    Pool pool;
    pool.add_host("h1", 1);
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    SubmitGrain large = Pool::grain(1, 0);
    large.demands.memory_mb = 4096;
    pool.call(find, large);
    CHECK(pool.gwait(find, 1, 0, true).empty());  // nothing is known
    const auto says = [&](std::int64_t free_kb, std::int64_t total_kb) {
        const wire::CallIn call{0, free_kb, false, {}, total_kb};
        return pool.feed(ServerCallIn{pool.conn("h1"), pool.id("h1"), call});
    };
    CHECK(says(1 << 20, 0).empty());        // a server of the release before
    CHECK(says(1 << 20, 8 << 20).empty());  // enough, though not free now
    CHECK(says(1 << 20, 2 << 20) ==
          Lines{"ann: error CANNOT_RUN: no host can run the remaining grains of session ann/1; for grain 0: 1 host "
                "configured, 1 with too little memory"});
    CHECK(says(4 << 20, 2 << 20) == Lines{"h1: launch ann/1:0 inc 1 next 1"});  // more is free than it says that it has
}
