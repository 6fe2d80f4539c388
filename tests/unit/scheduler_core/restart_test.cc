// A running grain that is restarted by command leaves its host by the owner's will, not by the host's.
#include "pool.h"

using namespace dcs;
using namespace dcs::core;

TEST_CASE("for failed grains a closed session becomes active, if there are any") {
    Pool pool(0);
    pool.add_host("h1", 1, 2);
    pool.table();
    pool.first_call("h1");
    const Program find = pool.begin("ann", "find");
    for (const int session : {1, 2}) {
        pool.open(find, session, wire::OpenMode::resume);
        SubmitGrain call = Pool::grain(session, 0);
        call.demands.attempts = 1;
        pool.call(find, call);
        pool.end("h1", "ann/" + std::to_string(session) + ":0", session == 2);
        pool.close(find, session);
        const wire::OpenSession open{
            .number = session, .mode = wire::OpenMode::resume, .sent_reset = true, .for_failed = true};
        CHECK(pool.answer<wire::OpenReply>(find, open).results == 1);
    }
    CHECK(pool.session("ann/1").info.status == SessionStatus::terminated);
    CHECK(pool.session("ann/2").info.status == SessionStatus::active);
}

TEST_CASE("a forgotten grain goes on demand, and may be submitted as another") {
    Pool pool(0);
    pool.add_host("h1", 1, 3);
    pool.table();
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1, wire::OpenMode::resume);
    pool.first_call("h1");
    for (const int grain : {0, 1}) pool.gexec(find, 1, grain);
    pool.end("h1", "ann/1:0");
    pool.gwait(find, 1, 0);
    pool.gexec(find, 1, 2);
    pool.end("h1", "ann/1:1");
    wire::RestartGrain order{"ann", 1, 0, true, 0};
    order.erases = true;
    const Program ann = pool.stranger("ann");
    CHECK(pool.call(ann, order).at(0).find("REFUSED") != std::string::npos);  // grain 2 goes as well
    order.forgets = 1;
    pool.call(ann, order);
    CHECK(pool.session("ann/1").grains.size() == 1);
    CHECK(pool.session("ann/1").results.grains() == std::vector<GrainNumber>{-1, 1});
    const Program again = pool.begin("ann", "find");
    pool.open(again, 1, wire::OpenMode::resume, true);
    CHECK(pool.call(again, Pool::grain(1, 0, 0, "another")).at(0) == "ann: done");
    CHECK(pool.status("ann/1:0") == "running");
    CHECK(pool.at("ann/1:0").incarnation > 1);  // no older lease counts
}

TEST_CASE("a restart by command is one move, and nothing is held against the host") {
    Pool pool;
    pool.add_host("h1");
    pool.table();
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.first_call("h1");
    pool.gexec(find, 1, 0);
    pool.restart(pool.stranger("ann"), "ann/1:0");
    CHECK(pool.status("ann/1:0") == "running");  // until it is back with its checkpoint
    REQUIRE(pool.at("ann/1:0").course->moves.get().size() == 1);
    pool.end("h1", "ann/1:0", 0, 0, true);
    const std::vector<Move> &moves = pool.at("ann/1:0").course->moves.get();
    REQUIRE(moves.size() == 1);
    CHECK(moves[0].reason == MoveReason::restarted);
    CHECK(moves[0].incarnation == 1);
    CHECK(pool.state.host(pool.id("h1"))->held_back.empty());
    CHECK(pool.status("ann/1:0") == "running");  // at once, where it was
    CHECK(pool.at("ann/1:0").incarnation == 2);

    // What the host gives back of its own will later is another move, and held against it.
    pool.end("h1", "ann/1:0", 0, 0, true);
    REQUIRE(pool.at("ann/1:0").course->moves.get().size() == 2);
    CHECK(pool.at("ann/1:0").course->moves.get()[1].reason == MoveReason::given_back);
    CHECK(pool.state.host(pool.id("h1"))->held_back.size() == 1);
    CHECK(pool.status("ann/1:0") == "ready");
}
