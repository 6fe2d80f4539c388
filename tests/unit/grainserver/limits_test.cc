// What a grain may use: its time, its output; and how the scheduler learns of both.
#include "base/limits.h"
#include "core_bench.h"
#include "support/about.h"

using namespace bench;

namespace {
void launch_for(Bench &b, const GrainId &g, int wall_s) {
    if (!b.state.launcher_up) b.in(LauncherUp{});
    wire::Launch m;
    m.key = wire::wire_of(g.key);
    m.incarnation = g.incarnation;
    m.argv = {"/bin/cat"};
    m.demands.wall_s = wall_s;
    b.message(m);
    b.in(LaunchWritten{g});
}
void run_for(Bench &b, const GrainId &g, int wall_s) {
    launch_for(b, g, wall_s);
    b.in(GrainStarted{g});
    b.clear();
}
DirFacts used(std::int64_t user_us, std::int64_t system_us) {
    DirFacts f = dir({{1, 1}});
    f.usage.user_us = user_us;
    f.usage.system_us = system_us;
    return f;
}
wire::HeldGrain held_after_reconnect(Bench &b) {
    b.in(LinkClosed{"gone"});
    b.pass(milliseconds(300));
    b.in(LinkOpened{});
    const auto calls = b.sent<wire::FirstCall>();
    REQUIRE(calls.size() == 1);
    REQUIRE(calls[0].held.size() == 1);
    b.message(wire::Configure{9, 2, 1});
    return calls[0].held[0];
}
}  // namespace

TEST_CASE("a grain that runs longer than it may is killed, and that is its result") {
    Bench b;
    b.connect(9);
    run_for(b, id(), 100);
    b.pass(seconds_of(99.9));
    REQUIRE(b.none<KillGrain>());
    b.clear();
    b.pass(seconds_of(0.2));
    const WriteEnding ending = b.one<WriteEnding>();
    REQUIRE(ending.ending == server::Ending::overrun);
    REQUIRE(ending.limit_signal == 24);
    b.one<KillGrain>();
    b.pass(seconds(10));
    b.one<KillGrain>();  // again, should it not have arrived
    b.clear();
    b.in(GrainExited{id(), ExitFacts{true, 0, 9, false, "", {}}});
    b.look(id(), dir({{1, 10}}));
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.ended);
    REQUIRE(r.signal == 24);
    REQUIRE(r.exit_code == 0);
    REQUIRE(r.limit);
    REQUIRE_FALSE(r.innocent);
    REQUIRE(r.reason == about("grain longer 100"));
    REQUIRE(r.last == 1);
}

TEST_CASE("a grain that runs longer than it may reports its checkpoint first") {
    Bench b;
    b.connect(9);
    run_for(b, id(), 100);
    b.pass(seconds_of(100.2));
    b.one<KillGrain>();
    b.clear();
    b.in(GrainExited{id(), ExitFacts{true, 0, 9, false, "", {}}});
    b.look(id(), dir({{1, 10}, {2, 3}}, {{1, 5}}));
    SendReport r = b.one<SendReport>();
    REQUIRE_FALSE(r.ended);
    REQUIRE(r.checkpoint == 1);
    REQUIRE(r.last == 1);
    const bool fits = GENERATE(true, false);
    b.clear();
    if (fits) b.ack(id(), 1, false, wire::Verdict::taken);
    else b.in(ReportUnsendable{id(), ReportUnsendable::Why::too_big, 1, "too big"});
    r = b.one<SendReport>();
    REQUIRE(r.ended);
    REQUIRE(r.signal == 24);
    REQUIRE(r.checkpoint == 0);
    REQUIRE(r.first == (fits ? 2 : 1));
    REQUIRE(r.last == 2);
}

TEST_CASE("time counts from the start, not while the grain waits for a slot") {
    Bench b;
    b.connect(9, 1);
    b.run_grain(id(9));
    launch_for(b, id(), 3);
    b.pass(seconds(10));
    b.in(GrainExited{id(9), {}});
    b.in(GrainStarted{id()});
    b.pass(seconds_of(2.9));
    REQUIRE(b.none<KillGrain>());
    b.pass(seconds_of(0.2));
    b.one<KillGrain>();
}

TEST_CASE("no limit, and one that is not reached") {
    Bench b;
    b.connect(9);
    const int wall = GENERATE(0, -1, INT32_MAX);
    run_for(b, id(), wall);
    b.pass(seconds(1000));
    REQUIRE(b.none<KillGrain>());
}

TEST_CASE("a grain that ends in time has its own end") {
    Bench b;
    b.connect(9);
    run_for(b, id(), 5);
    b.exit(id(), dir({{1, 1}}), {true, 3, 0, false, "", {}});
    b.pass(seconds(6));
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.exit_code == 3);
    REQUIRE_FALSE(r.limit);
    REQUIRE(b.none<KillGrain>());
}

TEST_CASE("a grain that got its TERM in a withdrawal ends innocently, whatever its time says") {
    Bench b;
    b.connect(9);
    run_for(b, id(), 5);
    b.pass(seconds_of(4.9));
    b.clear();
    b.withdraw(id(), false, "an older session needs the host");
    b.look(id(), dir({{1, 1}}, {}, false));
    b.one<TerminateGrain>();
    b.pass(seconds(1));
    REQUIRE(b.none<KillGrain>());
    b.exit(id(), dir({{1, 1}}), {true, 0, 15, false, "", {}});
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.innocent);
    REQUIRE(r.reason == about("older session needs"));
}

TEST_CASE("a restarted server goes on counting from the grain's start") {
    Bench b;
    Adopted a;
    a.id = id();
    a.started = true;
    a.wall_s = 100;
    a.since = b.now;
    b.wait(seconds(70));
    b.in(std::move(a));
    b.connect(9);
    b.in(LauncherUp{});
    b.pass(seconds_of(29.9));
    REQUIRE(b.none<KillGrain>());
    b.pass(seconds_of(0.2));
    b.one<KillGrain>();
}

TEST_CASE("a restarted server knows which limit it was that ended the grain") {
    Bench b;
    Adopted a;
    a.id = id();
    a.started = true;
    a.ending = server::Ending::overrun;
    a.limit_signal = 24;
    a.reason = "the grain ran longer than its 7 s";
    a.exit = ExitFacts{true, 0, 9, false, "", {}};
    b.in(std::move(a));
    b.look(id(), dir({{1, 1}}));
    b.in(Began{});
    b.in(LinkOpened{});
    b.message(wire::Configure{9, 2, 1});
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.signal == 24);
    REQUIRE(r.limit);
    REQUIRE(r.reason == about("grain longer 7"));
    REQUIRE_FALSE(r.limit_of_host);
}

TEST_CASE("a limit that the launcher enforces is the host's, and the scheduler learns the limits") {
    Bench b;
    b.state.limits.file_mb = 10;
    b.connect(9);
    b.run_grain(id());
    b.exit(id(), dir({{1, 1}}), {true, 0, 9, false, "more than its 10 MB", {}, 25});
    const SendReport r = b.one<SendReport>();
    REQUIRE((r.limit && r.limit_of_host));
    REQUIRE(r.signal == 25);
    b.in(Gauged{});
    REQUIRE(b.sent<wire::CallIn>().back().limits.file_mb == 10);
}

TEST_CASE("a server warns of limits that its launcher counts for lack of control groups, and of lost claims to uids") {
    Bench b;
    b.state.limits.cpu_s = 60;
    b.connect(300);
    const auto warning = [&](bool counts, bool uids_lost = false) {
        b.in(LauncherUp{true, counts});
        Gauged gauged;
        gauged.uids_lost = uids_lost;
        b.in(gauged);
        return b.sent<wire::CallIn>().back().warning;
    };
    CHECK(warning(true).empty());
    b.state.limits.processes = 512;
    CHECK(warning(true) == about("control groups counts memory processes"));
    CHECK(warning(true, true) == about("control groups uids.lock removed restarted"));
    CHECK(warning(false).empty());
}

TEST_CASE("the output limit is one that the grain would meet again") {
    Bench b;
    b.connect(9);
    b.run_grain(id());
    const std::uint64_t much = limits::report_bytes + 1;
    if (GENERATE(true, false)) b.in(Looked{id(), dir({{1, much}})});  // found while it runs, or after
    b.exit(id(), dir({{1, much}}), {true, 0, 9, false, "", {}});
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.signal == 25);
    REQUIRE(r.limit);
}

TEST_CASE("more increments than a look counts are a limit, and no fault while the scheduler accepts none") {
    DirFacts many = dir({{1, 1}, {2, 1}});
    many.too_many = true;
    SECTION("without a checkpoint, found while it runs, or after") {
        Bench b;
        b.connect(9);
        b.run_grain(id());
        if (GENERATE(true, false)) b.in(Looked{id(), many});
        b.exit(id(), many, {true, 0, 9, false, "", {}});
        const SendReport r = b.one<SendReport>();
        REQUIRE((r.limit && r.cut && r.signal == 25));
        REQUIRE(r.reason == about("more than 16384 increments"));
    }
    SECTION("with a checkpoint") {
        Bench b;
        b.connect(9);
        b.run_grain(id());
        many.checkpoints[2] = 3;
        b.in(Looked{id(), many});
        const auto results = b.sent<wire::LaunchResult>();
        REQUIRE(results.size() == 1);
        REQUIRE(results[0].text == about("more than 16384 increments"));
    }
}

TEST_CASE("where the last four checkpoints are bad, no others are read") {
    Bench b;
    b.connect();
    b.run_grain(id());
    DirFacts many;
    for (std::uint32_t k = 1; k <= 100; ++k) many.increments[k] = 0, many.checkpoints[k] = 5;
    b.exit(id(), many, {true, 0, 0, false, "", {}});
    for (std::uint32_t k = 100; k > 96; --k) {
        const SendReport r = b.one<SendReport>();
        REQUIRE(r.checkpoint == k);
        REQUIRE_FALSE(r.ended);
        b.in(ReportUnsendable{id(), ReportUnsendable::Why::bad_checkpoint, k, "checksum"});
    }
    const SendReport r = b.one<SendReport>();
    REQUIRE(r.checkpoint == 0);
    REQUIRE((r.ended && r.last == 100));
}

TEST_CASE("only the call-in at the end of a slice is its boundary") {
    Bench b;
    b.connect(9);
    const auto boundaries = [&] {
        std::string text;
        for (const Gauge &g : b.take<Gauge>()) {
            b.in(Gauged{1, 1, g.boundary});
            const auto calls = b.sent<wire::CallIn>();
            REQUIRE(calls.size() == 1);
            text += calls[0].boundary ? 'B' : 'e';
        }
        return text;
    };
    b.run_grain(id());
    b.pass(seconds(5));
    REQUIRE(boundaries().empty());
    b.exit(id(), dir({{1, 1}}), {true, 3, 0, false, "", {}});
    REQUIRE(boundaries() == "e");  // early: a slot is free
    b.pass(seconds(5));
    REQUIRE(boundaries() == "B");
    b.message(wire::Configure{9, 2, 1});  // asked for again
    REQUIRE(boundaries() == "e");
    b.in(LinkClosed{"gone"});
    b.pass(milliseconds(300));
    b.in(LinkOpened{});
    b.message(wire::Configure{9, 2, 1});
    REQUIRE(boundaries() == "ee");  // and one with the end that is reported again
    b.pass(seconds(9));
    REQUIRE(boundaries() == "B");
}

TEST_CASE("the first call says how long each grain has run, by what was seen last") {
    Bench b;
    b.connect(9);
    b.run_grain(id());
    REQUIRE(held_after_reconnect(b).cpu_us == 0);
    b.in(Looked{id(), used(3'000'000, 500'000)});
    REQUIRE(held_after_reconnect(b).cpu_us == 3'500'000);
    b.in(Looked{id(), used(0, 0)});  // its process is gone, its end is not known
    REQUIRE(held_after_reconnect(b).cpu_us == 3'500'000);
    ExitFacts e;
    e.known = true;
    e.usage.user_us = 4'000'000;
    b.in(GrainExited{id(), e});
    REQUIRE(held_after_reconnect(b).cpu_us == 4'000'000);
}

TEST_CASE("a restarted server looks how long its grains have run before it calls") {
    Bench b;
    Adopted runs, has_ended;
    runs.id = id(1);
    runs.started = true;
    has_ended.id = id(2);
    has_ended.started = true;
    has_ended.exit = ExitFacts{true, 0, 0, false, "", {}};
    has_ended.exit->usage.system_us = 7;
    b.in(std::move(runs));
    b.in(std::move(has_ended));
    REQUIRE(b.take<Look>().size() == 2);
    REQUIRE(b.none<Connect>());
    b.in(Looked{id(1), used(3600'000'000, 0)});
    b.in(Looked{id(2), used(0, 0)});
    b.in(Began{});
    b.in(LinkOpened{});
    const wire::FirstCall call = b.sent<wire::FirstCall>().at(0);
    REQUIRE(call.held.size() == 2);
    REQUIRE(call.held[0].cpu_us == 3600'000'000);
    REQUIRE(call.held[1].cpu_us == 7);
}
