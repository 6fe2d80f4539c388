// A tentative launch: verified at once, started before others, given up when no slot becomes free.
#include "core_bench.h"

using namespace bench;

namespace {
void launch_tentatively(Bench &b, const GrainId &g, bool tentative = true) {
    wire::Launch m;
    m.key = wire::wire_of(g.key);
    m.incarnation = g.incarnation;
    m.argv = {"/bin/cat"};
    m.tentative = tentative;
    b.message(m);
}
wire::LaunchResult result(Bench &b) {
    std::vector<wire::LaunchResult> all = b.sent<wire::LaunchResult>();
    REQUIRE(all.size() == 1);
    return all[0];
}
// One slot, taken by grain 9.
struct Full : Bench {
    Full() {
        connect(9, 1);
        run_grain(id(9));
    }
    void stage(const GrainId &g) {
        launch_tentatively(*this, g);
        in(LaunchWritten{g});
        in(GrainProved{g});
        REQUIRE(result(*this).staged);
        clear();
    }
};
}  // namespace

TEST_CASE("a tentative launch: written, verified without a slot, staged, started, ok") {
    Full b;
    launch_tentatively(b, id());
    REQUIRE(b.one<WriteLaunch>().launch.tentative);
    REQUIRE(b.none<ProveGrain>());
    b.in(LaunchWritten{id()});
    REQUIRE(b.one<ProveGrain>().id == id());
    REQUIRE(b.sent<wire::LaunchResult>().empty());
    b.in(GrainProved{id()});
    const wire::LaunchResult staged = result(b);
    REQUIRE_FALSE(staged.ok);
    REQUIRE(staged.staged);
    REQUIRE(staged.code == static_cast<int>(Code::ok));
    REQUIRE(b.none<StartGrain>());
    b.in(GrainExited{id(9), {}});
    REQUIRE(b.one<StartGrain>().id == id());
    b.in(GrainStarted{id()});
    const wire::LaunchResult started = result(b);
    REQUIRE(started.ok);
    REQUIRE_FALSE(started.staged);
}

TEST_CASE("a tentative launch that cannot run is told with its code, and its directory goes") {
    Full b;
    launch_tentatively(b, id());
    b.in(LaunchWritten{id()});
    b.in(StartFailed{id(), Code::not_found, false, "no such program"});
    const wire::LaunchResult r = result(b);
    REQUIRE_FALSE(r.ok);
    REQUIRE_FALSE(r.staged);
    REQUIRE(r.code == static_cast<int>(Code::not_found));
    REQUIRE(r.text == "no such program");
    REQUIRE(b.one<RemoveDir>().id == id());
    REQUIRE(b.state.grains.count(id()) == 0);
}

TEST_CASE("what is not verified does not start, also where a slot is free, a staged grain starts at once there") {
    Bench b;
    b.connect(9, 1);
    b.in(LauncherUp{});
    launch_tentatively(b, id());
    b.in(LaunchWritten{id()});
    REQUIRE(b.none<StartGrain>());
    b.in(GrainProved{id()});
    REQUIRE(result(b).staged);
    b.one<StartGrain>();
}

TEST_CASE("a staged grain goes before what was queued earlier, staged ones among themselves by age") {
    Full b;
    launch_tentatively(b, id(1), false);
    b.in(LaunchWritten{id(1)});
    b.stage(id(3));
    b.stage(id(2));
    b.in(GrainExited{id(9), {}});
    REQUIRE(b.one<StartGrain>().id == id(3));
    b.in(GrainStarted{id(3)});
    b.in(GrainExited{id(3), {}});
    REQUIRE(b.one<StartGrain>().id == id(2));
    b.in(GrainStarted{id(2)});
    b.in(GrainExited{id(2), {}});
    REQUIRE(b.one<StartGrain>().id == id(1));
}

TEST_CASE("a staged grain is given up after the interval and 15 s") {
    Full b;
    b.stage(id());
    b.pass(seconds_of(23.9));
    REQUIRE(b.sent<wire::LaunchResult>().empty());
    b.pass(seconds_of(0.2));
    const wire::LaunchResult r = result(b);
    REQUIRE_FALSE(r.ok);
    REQUIRE_FALSE(r.staged);
    REQUIRE(r.code == static_cast<int>(Code::limit));
    REQUIRE(r.text.find("no slot became free") != std::string::npos);
    b.one<RemoveDir>();
}

TEST_CASE("a slot that another server still holds: the staged grain keeps its place and is tried again") {
    Full b;
    b.stage(id());
    b.in(GrainExited{id(9), {}});
    b.one<StartGrain>();
    b.in(StartFailed{id(), Code::limit, true, "all slots are held"});
    REQUIRE(b.sent<wire::LaunchResult>().empty());
    b.pass(milliseconds(300));
    b.one<StartGrain>();
}

TEST_CASE("a launcher that died is asked again, and what was staged stays so") {
    Full b;
    launch_tentatively(b, id(1));
    b.in(LaunchWritten{id(1)});
    b.stage(id(2));
    b.in(LauncherDown{});
    b.in(LauncherUp{});
    REQUIRE(b.one<ProveGrain>().id == id(1));
}

TEST_CASE("without a launcher a tentative launch waits, and is verified when there is one") {
    Bench b;
    b.connect(9, 1);
    launch_tentatively(b, id());
    b.in(LaunchWritten{id()});
    REQUIRE(b.none<ProveGrain>());
    b.in(LauncherUp{});
    b.one<ProveGrain>();
}

TEST_CASE("a scheduler that comes back is told again what is staged") {
    Full b;
    b.stage(id());
    b.in(LinkClosed{"gone"});
    b.pass(milliseconds(300));
    b.in(LinkOpened{});
    REQUIRE(b.sent<wire::FirstCall>().at(0).held.size() == 2);
    REQUIRE(b.sent<wire::LaunchResult>().empty());
    b.message(wire::Configure{9, 1, 1});
    REQUIRE(result(b).staged);
}

TEST_CASE("a staged grain can be withdrawn with a reason, and leaves nothing") {
    Full b;
    b.stage(id());
    b.withdraw(id(), false, "the session was closed");
    b.one<RemoveDir>();
    const wire::LaunchResult r = result(b);
    REQUIRE(r.code == static_cast<int>(Code::refused));
    REQUIRE(r.text.find("the session was closed") != std::string::npos);
    b.in(GrainProved{id()});  // an answer of the launcher that was on its way
    REQUIRE(b.sent<wire::LaunchResult>().empty());
}

TEST_CASE("adoption: a tentative grain is queued, verified again, told again, and has its patience again") {
    Bench b;
    Adopted a;
    a.id = id();
    a.tentative = true;
    b.state.slots = 1;
    b.in(std::move(a));
    b.in(Began{});
    b.in(LauncherUp{});
    b.one<ProveGrain>();
    REQUIRE(b.none<StartGrain>());
    b.in(LinkOpened{});
    REQUIRE(b.sent<wire::FirstCall>().at(0).held.size() == 1);
    b.message(wire::Configure{9, 0, 1});
    REQUIRE(b.sent<wire::LaunchResult>().empty());
    b.in(GrainProved{id()});
    REQUIRE(result(b).staged);
    b.pass(seconds(26));
    REQUIRE(result(b).code == static_cast<int>(Code::limit));
}
