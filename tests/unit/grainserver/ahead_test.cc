// Grains that the server has beyond its slots.
#include "core_bench.h"

using namespace bench;
using wire::Verdict;

TEST_CASE("grains that wait for a slot start as others end, of short ones the scheduler gets the report only") {
    Bench b;
    b.connect(9, 2);
    b.in(LauncherUp{});
    for (int i = 1; i <= 5; ++i) {
        b.launch(id(i));
        b.in(LaunchWritten{id(i)});
    }
    REQUIRE(b.take<StartGrain>().size() == 2);
    REQUIRE(b.state.derived.processes == 2);
    REQUIRE(b.state.derived.queue.size() == 3);
    b.in(GrainStarted{id(1)});
    b.in(GrainStarted{id(2)});
    b.in(GrainExited{id(1), {true}});
    REQUIRE(b.one<StartGrain>().id == id(3));
    b.look(id(1), dir({{1, 0}}));
    const SendReport report = b.one<SendReport>();
    REQUIRE((report.ended && report.empty));
    REQUIRE(b.none<Gauge>());  // no slot is free
    REQUIRE(b.sent<wire::LaunchResult>().empty());
    b.pass(milliseconds(60));
    const auto late = b.sent<wire::LaunchResult>();
    REQUIRE((late.size() == 1 && late[0].ok && wire::key_of(late[0].key) == id(2).key));
    b.in(GrainStarted{id(3)});
    b.withdraw(id(5), false, "another host has room");  // it waits: its end is said at once
    REQUIRE(b.sent<wire::LaunchResult>().size() == 1);
    b.exit(id(2), dir({{1, 7}}), {});
    REQUIRE(b.one<StartGrain>().id == id(4));
    REQUIRE_FALSE(b.one<SendReport>().empty);
    b.in(GrainStarted{id(4)});  // nothing waits any more: the scheduler may be watched by people
    REQUIRE(b.sent<wire::LaunchResult>().size() == 1);
    b.exit(id(3), dir({{1, 0}}), {});
    b.one<Gauge>();
    for (int i = 1; i <= 3; ++i) b.ack(id(i), 1, true, Verdict::taken);
    REQUIRE(b.state.grains.size() == 1);
}
namespace {
void launch_small(Bench &b, int grain) {
    wire::Launch launch = b.launch_of(id(grain));
    launch.input.clear();
    b.message(launch);
}
// What was to be written is.
std::vector<int> written(Bench &b) {
    std::vector<int> grains;
    for (std::vector<WriteLaunch> some = b.take<WriteLaunch>(); !some.empty(); some = b.take<WriteLaunch>())
        for (const WriteLaunch &w : some) {
            REQUIRE_FALSE(w.launch.argv.empty());
            grains.push_back(w.id.key.grain);
            b.in(LaunchWritten{w.id});
        }
    return grains;
}
std::vector<int> from_to(int first, int last) {
    std::vector<int> all;
    for (int i = first; i <= last; ++i) all.push_back(i);
    return all;
}
}  // namespace

TEST_CASE("directories of small grains are made as their turn comes near, of others at once") {
    Bench b;
    b.connect(9, 2);
    b.in(LauncherUp{});
    for (int i = 1; i <= 20; ++i) launch_small(b, i);
    REQUIRE(written(b) == from_to(1, 6));  // two run, and four are ready to
    REQUIRE(b.take<StartGrain>().size() == 2);
    REQUIRE(b.state.derived.held.size() == 14);
    SECTION("each end brings the next") {
        for (int i = 1; i <= 3; ++i) {
            b.in(GrainStarted{id(i)});
            b.exit(id(i), dir({{1, 0}}), {});
            REQUIRE(b.one<StartGrain>().id == id(i + 2));
            REQUIRE(written(b) == from_to(i + 6, i + 6));
        }
    }
    SECTION("one that brings an input does not wait for it") {
        b.launch(id(21));
        REQUIRE(written(b) == from_to(21, 21));
    }
    SECTION("a directory that cannot be made is not waited for") {
        b.in(GrainStarted{id(1)});
        b.exit(id(1), dir({{1, 0}}), {});
        b.in(LaunchUnwritten{b.one<WriteLaunch>().id, Code::no_space, "full"});
        REQUIRE(written(b) == from_to(8, 8));
        REQUIRE(b.state.grains.count(id(7)) == 0);
    }
    SECTION("one that is withdrawn is not made, and the scheduler hears of it") {
        b.withdraw(id(8), false, "another host has room");
        const auto results = b.sent<wire::LaunchResult>();
        REQUIRE((results.size() == 1 && !results[0].ok && wire::key_of(results[0].key) == id(8).key));
        for (const int i : {1, 2}) {
            b.in(GrainStarted{id(i)});
            b.exit(id(i), dir({{1, 0}}), {});
        }
        REQUIRE(written(b) == std::vector<int>{7, 9});
    }
    SECTION("they are had at the next call, and taken once") {
        b.in(LinkClosed{"killed"});
        b.pass(seconds(1));
        b.in(LinkOpened{});
        const auto calls = b.sent<wire::FirstCall>();
        REQUIRE((calls.size() == 1 && calls[0].held.size() == 20));
        b.message(wire::Configure{9, 2, 1});
        launch_small(b, 15);
        REQUIRE(written(b).empty());
    }
    SECTION("a host that shuts gives them back") {
        b.in(Leave{"its job ends"});
        REQUIRE(b.sent<wire::LaunchResult>().size() == 18);
        REQUIRE(b.state.grains.size() == 2);
        REQUIRE(written(b).empty());
    }
    SECTION("they are given back after the same time as those that have one") {
        b.in(GrainStarted{id(1)});
        b.in(GrainStarted{id(2)});
        b.clear();
        b.pass(seconds(20));
        REQUIRE(b.state.grains.size() == 2);
    }
}
TEST_CASE("while grains wait here, the ends of others are reported in groups") {
    Bench b;
    b.connect(9, 1);
    b.in(LauncherUp{});
    for (int i = 1; i <= 6; ++i) {
        b.launch(id(i));
        b.in(LaunchWritten{id(i)});
    }
    const auto run = [&](int i) {
        b.in(GrainStarted{id(i)});
        b.exit(id(i), dir({{1, 0}}), {});
    };
    run(1);
    REQUIRE(b.one<SendReport>().id == id(1));
    b.wait(milliseconds(1));
    run(2);
    run(3);
    REQUIRE(b.none<SendReport>());
    b.pass(report_pause);
    REQUIRE(b.take<SendReport>().size() == 2);
    REQUIRE(b.state.grouped.empty());
    b.wait(milliseconds(1));
    run(4);
    REQUIRE(b.none<SendReport>());
    b.in(LinkClosed{"killed"});
    b.pass(report_pause);
    REQUIRE(b.none<SendReport>());
    b.connect(9, 1);
    b.pass(report_pause);
    REQUIRE(b.state.grains.at(id(4)).outstanding);
    b.clear();
    b.wait(milliseconds(1));
    run(5);
    REQUIRE(b.one<SendReport>().id == id(5));  // nothing waits any more: one slot, one grain
}
TEST_CASE("what is called back and has started stays") {
    Bench b;
    b.connect(9, 1);
    b.run_grain(id(1));
    b.launch(id(2));
    b.in(LaunchWritten{id(2)});
    b.sent<wire::LaunchResult>();
    for (const GrainId &g : {id(1), id(2)})
        b.message(wire::Withdraw{wire::wire_of(g.key), g.incarnation, false, "another host is idle", true});
    REQUIRE(b.none<WriteEnding>());
    REQUIRE(b.none<Look>());
    REQUIRE(b.one<RemoveDir>().id == id(2));
    const auto results = b.sent<wire::LaunchResult>();
    REQUIRE(results.size() == 1);
    REQUIRE_FALSE(results[0].ok);
    REQUIRE(wire::key_of(results[0].key) == id(2).key);
    REQUIRE(b.state.grains.size() == 1);
}
