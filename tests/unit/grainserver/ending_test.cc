// Withdrawal and adoption after a restart of the server.
#include "core_bench.h"
#include "support/about.h"

using namespace bench;
using wire::Verdict;

TEST_CASE("withdrawal: checkpoint signal, TERM as soon as the checkpoint is there, innocent end") {
    Bench b;
    b.connect(9);
    b.run_grain(id());
    b.withdraw(id(), false, "an older session needs the host");
    REQUIRE(b.one<WriteEnding>().ending == server::Ending::asked);
    b.look(id(), dir({{1, 1}}));
    b.one<CheckpointSignal>();
    REQUIRE(b.none<TerminateGrain>());
    b.pass(milliseconds(100));
    b.look(id(), dir({{1, 1}}));
    REQUIRE(b.none<TerminateGrain>());
    REQUIRE(b.none<CheckpointSignal>());  // once
    b.pass(milliseconds(100));
    b.look(id(), dir({{1, 1}, {2, 0}}, {{1, 3}}));
    const auto endings = b.take<WriteEnding>();  // on disk before the signal
    REQUIRE(endings.size() == 1);
    REQUIRE(endings[0].ending == server::Ending::terminated);
    b.one<TerminateGrain>();
    REQUIRE(b.one<SendReport>().checkpoint == 1);
    b.exit(id(), dir({{1, 1}, {2, 5}}, {{1, 3}}), {true, 0, 15, false, "", {}});
    REQUIRE(b.none<SendReport>());  // in order
    b.ack(id(), 1, false, Verdict::taken);
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.ended);
    REQUIRE(r.innocent);
    REQUIRE(r.reason == about("older session needs"));
    REQUIRE(r.first == 2);
}

TEST_CASE("withdrawal: no checkpoint in time, TERM, after ten seconds KILL") {
    Bench b;
    b.connect(9);
    b.run_grain(id());
    b.withdraw(id(), false, "busy");
    b.look(id(), dir({{1, 1}}));
    int waited_ms = 0;
    while (b.none<TerminateGrain>()) {
        REQUIRE(waited_ms < 3000);
        b.pass(milliseconds(100));
        waited_ms += 100;
        if (!b.take<Look>().empty()) b.in(Looked{id(), dir({{1, 1}})});
    }
    REQUIRE(waited_ms >= 1900);
    b.pass(seconds_of(9.8));
    REQUIRE(b.none<KillGrain>());
    b.pass(seconds_of(0.3));
    b.one<KillGrain>();
    b.pass(seconds(10));
    b.one<KillGrain>();  // and again, should it not have arrived
}

TEST_CASE("withdrawal: a grain without checkpoints gets TERM at once") {
    Bench b;
    b.connect(9);
    b.run_grain(id());
    b.withdraw(id(), false, "busy");
    b.look(id(), dir({{1, 1}}, {}, false));
    b.one<TerminateGrain>();
    REQUIRE(b.none<CheckpointSignal>());
}

TEST_CASE("withdrawal: a checkpoint that was there before does not count as the answer") {
    Bench b;
    b.connect(9);
    b.run_grain(id());
    b.withdraw(id(), false, "busy");
    b.look(id(), dir({{1, 1}, {2, 1}}, {{1, 3}}));
    b.one<CheckpointSignal>();
    REQUIRE(b.none<TerminateGrain>());
}

TEST_CASE("a grain that ends by itself before TERM was sent has ended by itself") {
    Bench b;
    b.connect(9);
    b.run_grain(id());
    b.withdraw(id(), false, "busy");
    b.look(id(), dir({{1, 1}}));
    b.exit(id(), dir({{1, 1}}), {});
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.ended);
    REQUIRE_FALSE(r.innocent);
}

TEST_CASE("status 85 is innocent only together with a checkpoint of this very run") {
    Bench b;
    b.connect();
    b.run_grain(id(), 0, 5);  // its earlier runs took four checkpoints
    ExitFacts e;
    e.code = 85;
    SECTION("without one it is a failure, whatever earlier runs took") {
        b.exit(id(), dir({{5, 1}}), e);
        const SendReport r = b.one<SendReport>();
        REQUIRE(r.ended);
        REQUIRE_FALSE(r.innocent);
        REQUIRE(r.exit_code == 85);
    }
    SECTION("with one it goes on from there: checkpoint first, then the end") {
        b.exit(id(), dir({{5, 1}, {6, 2}}, {{5, 3}}), e);
        const SendReport first = b.one<SendReport>();
        REQUIRE(first.checkpoint == 5);
        REQUIRE_FALSE(first.ended);
        b.ack(id(), 5, false, Verdict::taken);
        const SendReport r = b.one<SendReport>();
        REQUIRE(r.ended);
        REQUIRE(r.innocent);
        REQUIRE(r.reason == about("grain restarted checkpoint"));
    }
    SECTION("one that was taken long before the end counts too") {
        b.in(Looked{id(), dir({{5, 1}, {6, 2}}, {{5, 3}})});
        REQUIRE(b.one<SendReport>().checkpoint == 5);
        b.ack(id(), 5, false, Verdict::taken);
        b.exit(id(), dir({{6, 9}}), e);
        REQUIRE(b.one<SendReport>().innocent);
    }
    SECTION("one that is not believed does not count") {
        b.exit(id(), dir({{5, 1}, {6, 2}}, {{5, 3}}), e);
        REQUIRE(b.one<SendReport>().checkpoint == 5);
        b.in(ReportUnsendable{id(), ReportUnsendable::Why::bad_checkpoint, 5, "the state text has another checksum"});
        const SendReport r = b.one<SendReport>();
        REQUIRE(r.ended);
        REQUIRE_FALSE(r.innocent);
    }
    SECTION("signal 9 with such a code is signal 9") {
        e.signal = 9;
        b.exit(id(), dir({{5, 1}, {6, 2}}, {{5, 3}}), e);
        b.one<SendReport>();
        b.ack(id(), 5, false, Verdict::taken);
        REQUIRE_FALSE(b.one<SendReport>().innocent);
    }
}

TEST_CASE("withdrawal before the start: nothing runs, and that is the answer") {
    Bench b;
    b.connect(9);
    b.launch(id());
    b.in(LaunchWritten{id()});
    b.withdraw(id(), false, "busy");
    b.one<RemoveDir>();
    auto results = b.sent<wire::LaunchResult>();
    REQUIRE(results.size() == 1);
    REQUIRE_FALSE(results[0].ok);
    REQUIRE(b.state.grains.empty());
    b.withdraw(id(9), false, "unknown here");
    REQUIRE(b.sent<wire::LaunchResult>().size() == 1);
    b.withdraw(id(9), true, "unknown here");
    REQUIRE(b.sent<wire::LaunchResult>().empty());
}

TEST_CASE("withdrawal during the start takes effect when it is known") {
    Bench b;
    b.connect(9);
    b.in(LauncherUp{});
    b.launch(id());
    b.in(LaunchWritten{id()});
    b.clear();
    SECTION("discarded, started") {
        b.withdraw(id(), true, "gone");
        REQUIRE(b.none<KillGrain>());
        b.in(GrainStarted{id()});
        b.one<KillGrain>();
        REQUIRE(b.sent<wire::LaunchResult>().empty());
    }
    SECTION("discarded, failed") {
        b.withdraw(id(), true, "gone");
        b.in(StartFailed{id(), Code::not_found, false, "no"});
        REQUIRE(b.sent<wire::LaunchResult>().empty());
        REQUIRE(b.state.grains.empty());
    }
    SECTION("withdrawn, started") {
        b.withdraw(id(), false, "busy");
        b.in(GrainStarted{id()});
        b.look(id(), dir({{1, 0}}, {}, false));
        b.one<TerminateGrain>();
    }
}

TEST_CASE("a server reports how many killed grains are still ending, unless they end quickly") {
    Bench b;
    b.connect(60, 3);
    for (int grain : {1, 2, 3}) b.run_grain(id(grain));
    const auto told = [&] {
        if (b.none<Gauge>()) return -1;
        b.in(Gauged{});
        return b.sent<wire::CallIn>().back().ending;
    };
    b.withdraw(id(1), true, "gone");
    b.in(GrainExited{id(1), {}});
    b.pass(seconds(2));
    CHECK(told() == -1);
    b.withdraw(id(2), true, "gone");
    b.withdraw(id(3), false, "moved");  // it is reported when it ends
    CHECK(told() == -1);
    b.pass(seconds(2));
    CHECK(told() == 1);
    b.pass(seconds(2));
    CHECK(told() == -1);
    b.in(GrainExited{id(2), {}});
    b.pass(seconds(2));
    CHECK(told() == 0);
}

TEST_CASE("a discarded grain is not held, not reported, and killed again by a new launcher") {
    Bench b;
    b.connect(9);
    b.run_grain(id());
    b.withdraw(id(), true, "gone");
    b.one<TerminateGrain>();
    REQUIRE(b.none<KillGrain>());
    b.pass(kill_after + milliseconds(1));
    b.one<KillGrain>();
    b.in(LauncherDown{});
    b.in(LauncherUp{});
    b.one<KillGrain>();
    b.in(LinkClosed{"x"});
    b.pass(seconds(1));
    b.clear();
    b.in(LinkOpened{});
    REQUIRE(b.sent<wire::FirstCall>().at(0).held.empty());
}

TEST_CASE("a new launcher is asked again for starts that were not answered") {
    Bench b;
    b.connect(9);
    b.in(LauncherUp{});
    b.launch(id());
    b.in(LaunchWritten{id()});
    b.one<StartGrain>();
    b.in(LauncherDown{});
    b.in(LauncherUp{});
    b.one<StartGrain>();
}

TEST_CASE("adoption: everything goes on from where the dead server left it") {
    Bench b;
    b.state.slots = 5;
    const std::optional<ExitFacts> none;
    b.in(Adopted{id(1), 0, 1, 3, true, server::Ending::none, "", none});
    b.in(Adopted{id(2), 0, 1, 0, true, server::Ending::terminated, "busy", none});
    b.in(Adopted{id(3), 0, 1, 0, true, server::Ending::discard, "gone", none});
    b.in(Adopted{id(4), 0, 1, 0, false, server::Ending::none, "", none});
    b.in(Adopted{id(5), 0, 1, 0, true, server::Ending::discard, "gone", ExitFacts{}});
    REQUIRE(b.one<RemoveDir>().id == id(5));
    b.in(Began{});
    b.in(LauncherUp{});
    REQUIRE(b.one<TerminateGrain>().id == id(2));
    REQUIRE(b.one<KillGrain>().id == id(3));
    REQUIRE(b.one<StartGrain>().id == id(4));
    b.in(LinkOpened{});
    REQUIRE(b.sent<wire::FirstCall>().at(0).held.size() == 3);
    b.message(wire::Configure{9, 5, 1});
    b.clear();
    b.in(Looked{id(1), dir({{4, 1}, {5, 0}}, {{4, 2}})});
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.first == 4);  // after what was acknowledged
    REQUIRE(r.last == 4);
}

TEST_CASE("adoption: an end that was caused by a withdrawal stays innocent") {
    Bench b;
    b.in(Adopted{id(), 0, 1, 0, true, server::Ending::terminated, "busy", ExitFacts{true, 0, 15, false, "", {}}});
    b.look(id(), dir({{1, 1}}));
    b.connect();
    b.in(LinkClosed{"x"});
    b.pass(seconds(1));
    b.in(LinkOpened{});
    b.clear();
    b.message(wire::Configure{9, 2, 1});
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.innocent);
    REQUIRE(r.reason == "busy");
}
