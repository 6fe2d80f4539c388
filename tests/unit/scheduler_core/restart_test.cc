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

TEST_CASE("a result that is forgotten alone costs no look at the session's other grains, and no host's fence") {
    Pool pool(1, 100);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    for (int i = 0; i < 100; ++i) pool.gexec(find, 1, i);
    for (int i = 0; i < 50; ++i) pool.end("h1", "ann/1:" + std::to_string(i));
    for (int i = 0; i < 50; ++i) pool.gwait(find, 1, i);
    pool.gexec(find, 1, 100);  // after all that was handed out
    const auto order = [&](std::int32_t forgets) {
        return decide(pool.state, pool.now,
                      UserCall{pool.caller(pool.stranger("ann")), wire::RestartGrain{"ann", 1, 7, true, forgets}});
    };
    const auto sets_host = [](const Change &change) { return std::holds_alternative<SetHost>(change); };
    const Decision alone = order(-1), with_others = order(1);
    CHECK(alone.looked_at == 0);
    CHECK(std::none_of(alone.changes.begin(), alone.changes.end(), sets_host));
    CHECK(with_others.looked_at == 101);  // which of them were decided later
    CHECK(std::any_of(with_others.changes.begin(), with_others.changes.end(), sets_host));
    for (int i = 0; i < 50; ++i)
        CHECK(pool.call(pool.stranger("ann"), wire::RestartGrain{"ann", 1, i, true, -1}).at(0).find("done") !=
              std::string::npos);
    CHECK(pool.session("ann/1").counts[static_cast<int>(GrainStatus::finished)] == 0);
    CHECK(pool.state.grain(Pool::key("ann/1:100")) != nullptr);
}
