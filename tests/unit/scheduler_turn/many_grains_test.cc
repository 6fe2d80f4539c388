// A session that is read, and checked, in parts.
#include "pool.h"
#include "scheduler/state/decision.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

constexpr GrainNumber grains = 36'000, killed = 20'000, gap = 1'000'000'000;

// Of ann's: the first run on h1, or ran there; those of the middle were killed; the next run on h2, which is in no
// record before; one has a number far beyond the others.
void many_grains(Pool &pool, ModelServer &first, ModelServer &second) {
    const ConnId control = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::open, false});
    for (GrainNumber g = 0; g < grains; ++g) {
        pool.post(control, wire::Gexec{1, g, copying_grain("some input")});
        if (g % 1024 == 0) pool.pump();
    }
    pool.post(control, wire::Gexec{1, gap, copying_grain("other input")});
    pool.pump();
    first.connect();
    first.read();
    for (const GrainNumber g : {0, 1, 3}) first.finish({{"ann", 1}, g});
    first.read();
    first.disconnect();
    for (GrainNumber g = 100; g < killed; ++g) pool.post(control, wire::Gkill{"", 1, g});
    pool.pump();
    second.connect();
    second.read();
    REQUIRE_FALSE(second.held.empty());
    const auto one = second.held.begin()->first;
    second.finish(one);
    second.read();
    REQUIRE(pool.turn->state().grain(one)->status() == core::GrainStatus::finished);
}

}  // namespace

TEST_CASE("a session of many grains is read as it was, with the hosts of each") {
    Pool pool({host("h1", 40), host("h2", 40)});
    ModelServer first(pool, "h1"), second(pool, "h2");
    many_grains(pool, first, second);
    pool.verify();
    const std::string before = Pool::durable_text(pool.turn->state());
    pool.restart();
    CHECK(pool.reports.empty());
    const bool same = Pool::durable_text(pool.turn->state()) == before;
    CHECK(same);
    CHECK(core::check(pool.turn->state()) == "");
}

TEST_CASE("damage in any part of a large session is found, and named") {
    Pool pool({host("h1", 40), host("h2", 40)});
    ModelServer first(pool, "h1"), second(pool, "h2");
    many_grains(pool, first, second);
    REQUIRE(pool.store->flush().answer == store::Answer::done);
    const std::string file = "sessions/ann/1/grains";
    const std::uint64_t size = *pool.disk.size(file);
    const std::uint64_t percent = GENERATE(0u, 30u, 60u, 99u);
    pool.disk.flip(file, size * percent / 100, 0x40);
    pool.restart();
    REQUIRE(pool.reports.size() == 1);
    CHECK(pool.reports[0].find("session ann/1 is set aside: " + file) == 0);
    CHECK(pool.turn->state().session({"ann", 1}) == nullptr);
}

TEST_CASE("what is derived from a large session and differs is found in each part of it") {
    Pool pool({host("h1", 40), host("h2", 40)});
    ModelServer first(pool, "h1"), second(pool, "h2");
    many_grains(pool, first, second);
    core::State state = pool.turn->state();
    core::Session &session = state.sessions.at({"ann", 1});
    const GrainNumber number = GENERATE(0, 50, 5'000, 30'000, 35'999, gap);
    core::Grain &grain = session.grains.at(number);
    SECTION("its phase") { grain.phase = core::Killed{}; }
    SECTION("its files") { grain.files.edit().digests = {std::string(32, 'd')}; }
    if (number != 5'000) CHECK(core::check(state) != "");
    grain.params_length = 1u << 30;
    CHECK(core::check(state) == "grain ann/1:" + std::to_string(number) + ": parameters beyond the session's inputs");
}
