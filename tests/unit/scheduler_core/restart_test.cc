// A running grain that is restarted by command leaves its host by the owner's will, not by the host's.
#include "pool.h"

using namespace dcs;
using namespace dcs::core;

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
