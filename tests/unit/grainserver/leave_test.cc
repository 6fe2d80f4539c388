// A server in a batch job: when it leaves, and what becomes of its grains.
#include "core_bench.h"
#include "support/about.h"

using namespace bench;

namespace {
struct JobBench : Bench {
    explicit JobBench(Duration after = seconds(3600), Duration idle = Duration{}) {
        state.job.part_of = true;
        state.job.leave_at = now + after;
        state.job.idle = idle;
        connect();
    }
    bool left() const { return has_left(state); }
};
ExitFacts by_signal(int number) { return {true, 0, number, false, "", {}}; }
}  // namespace

TEST_CASE("a server leaves before its job's limit: last checkpoints, no new grain, and an end when all is known") {
    JobBench b(seconds(100));
    b.run_grain(id(1));
    b.pass(seconds(99));
    CHECK(b.state.job.leaving.empty());
    b.clear();
    b.pass(seconds(1));
    CHECK(b.state.job.leaving == about("batch job ends"));
    CHECK(b.state.grains.at(id(1)).ending == server::Ending::asked);
    CHECK_FALSE(b.take<server::Gauge>().empty());  // a call-in that says so
    b.in(Gauged{});
    CHECK(b.sent<wire::CallIn>().back().shut == about("batch job ends"));
    b.look(id(1), dir({{1, 1}}));
    CHECK(b.take<CheckpointSignal>().size() == 1);
    CHECK(b.none<TerminateGrain>());  // it has time for the checkpoint
    b.launch(id(2));
    const auto said = b.sent<wire::LaunchResult>();
    REQUIRE(said.size() == 1);
    CHECK(said[0].code == static_cast<int>(Code::limit));
    b.pass(milliseconds(100));
    b.look(id(1), dir({{1, 1}, {2, 0}}, {{1, 3}}));
    b.one<TerminateGrain>();
    b.exit(id(1), dir({{1, 1}, {2, 0}}, {{1, 3}}), by_signal(15));
    b.clear();
    b.ack(id(1), 1, false, wire::Verdict::taken);
    const SendReport last = b.one<SendReport>();
    CHECK((last.ended && last.innocent));
    CHECK(last.given_back == wire::GivenBack::shut_out);
    CHECK_FALSE(b.left());
    b.ack(id(1), 1, true, wire::Verdict::taken);
    CHECK(b.left());
    CHECK(next_deadline(b.state) > b.now);
}

TEST_CASE("a server leaves when no grain came for a while, and counts from the last one's end") {
    JobBench b(seconds(3600), seconds(60));
    b.run_grain(id(1));
    b.pass(seconds(300));
    b.exit(id(1), dir({{1, 1}}), {});
    b.ack(id(1), 1, true, wire::Verdict::taken);
    b.pass(seconds(59));
    CHECK(b.state.job.leaving.empty());
    b.pass(seconds(1));
    CHECK(b.state.job.leaving == about("no grain"));
    CHECK(b.left());
}

TEST_CASE("told to end, a server returns what waits unstarted and what starts meanwhile") {
    JobBench b;
    b.in(LauncherUp{true});
    for (int i : {1, 2, 3}) b.launch(id(i));
    b.in(LaunchWritten{id(1)});
    b.in(LaunchWritten{id(2)});
    b.in(GrainStarted{id(1)});
    b.clear();
    b.in(Leave{"told to end"});
    CHECK(b.state.grains.count(id(3)) == 0);  // its record was being written
    b.in(LaunchWritten{id(3)});
    b.one<RecallGrain>();
    b.in(GrainStarted{id(2)});  // the launcher was quicker
    for (int i : {1, 2}) CHECK(b.state.grains.at(id(i)).ending == server::Ending::asked);
    b.in(Leave{"again"});
    CHECK(b.state.job.leaving == "told to end");
}

TEST_CASE("the engine's SIGTERM to a grain is no fault of it in a batch job, and is one elsewhere") {
    JobBench b;
    b.state.job.part_of = GENERATE(true, false);
    b.run_grain(id(1));
    b.exit(id(1), dir({{1, 1}}), by_signal(15));
    const SendReport r = b.one<SendReport>();
    CHECK(r.ended);
    CHECK(r.innocent == b.state.job.part_of);
    CHECK((r.given_back == wire::GivenBack::by_itself) == b.state.job.part_of);
}

TEST_CASE("a server that leaves stays shut though the host is calm") {
    JobBench b;
    b.state.courtesy.on = true;
    b.in(Leave{"told to end"});
    HostSample calm;
    for (int i = 0; i < 300; ++i) {
        b.wait(seconds(1));
        calm.total_us += 1'000'000;
        b.in(Watched{calm, {}});
    }
    CHECK_FALSE(b.state.courtesy.shut.empty());
}
