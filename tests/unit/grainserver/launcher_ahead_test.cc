// Grains that wait at the launcher, beyond those that the slots can have.
#include "core_bench.h"

using namespace bench;

namespace {
// Two slots and two grains in them, four more at the launcher, and one behind these.
struct Crowd : Bench {
    Crowd() {
        connect(9, 2);
        in(LauncherUp{true});
        for (int i = 1; i <= 7; ++i) {
            launch(id(i));
            in(LaunchWritten{id(i)});
        }
        const auto starts = take<StartGrain>();
        REQUIRE(starts.size() == 6);
        in(GrainStarted{id(1)});
        in(GrainStarted{id(2)});
        clear();
    }
    void call_back(const GrainId &g) {
        message(wire::Withdraw{wire::wire_of(g.key), g.incarnation, false, "another host is idle", true});
    }
};
}  // namespace

TEST_CASE("a grain that waits at the launcher is withdrawn when the launcher has given it back") {
    Crowd b;
    b.call_back(id(5));
    b.call_back(id(5));  // asked once
    REQUIRE(b.one<RecallGrain>().id == id(5));
    REQUIRE(b.sent<wire::LaunchResult>().empty());
    REQUIRE(b.none<RemoveDir>());
    b.in(GrainRecalled{id(5)});
    REQUIRE(b.one<RemoveDir>().id == id(5));
    const auto results = b.sent<wire::LaunchResult>();
    REQUIRE((results.size() == 1 && !results[0].ok && wire::key_of(results[0].key) == id(5).key));
    REQUIRE(b.one<StartGrain>().id == id(7));
    b.clear();
    b.in(GrainRecalled{id(5)});
    REQUIRE(b.out.empty());
}

TEST_CASE("a grain that the launcher started before it was asked for it stays") {
    Crowd b;
    b.call_back(id(3));
    REQUIRE(b.one<RecallGrain>().id == id(3));
    b.in(GrainExited{id(1), {true}});
    b.clear();
    b.in(GrainStarted{id(3)});
    REQUIRE(b.state.grains.at(id(3)).phase == Phase::running);
    REQUIRE(b.none<WriteEnding>());
    b.in(GrainRecalled{id(3)});  // no such answer comes; it would not count
    REQUIRE(b.state.grains.at(id(3)).phase == Phase::running);
    b.call_back(id(3));
    REQUIRE(b.none<RecallGrain>());
}

TEST_CASE("withdrawn for good or discarded while it waits at the launcher") {
    Crowd b;
    b.withdraw(id(4), false, "a grain comes first");
    b.withdraw(id(5), true, "its session is closed");
    REQUIRE(b.take<RecallGrain>().size() == 2);
    REQUIRE(b.none<RemoveDir>());
    b.in(GrainRecalled{id(4)});
    b.in(GrainStarted{id(5)});  // too late
    REQUIRE(b.one<KillGrain>().id == id(5));
    REQUIRE(b.one<RemoveDir>().id == id(4));
    const auto results = b.sent<wire::LaunchResult>();
    REQUIRE((results.size() == 1 && !results[0].ok && wire::key_of(results[0].key) == id(4).key));
    b.in(GrainExited{id(5), {true}});
    REQUIRE(b.one<RemoveDir>().id == id(5));
}

TEST_CASE("a launcher that comes again gets what waits in its order, and is asked again for what is unwanted") {
    Crowd b;
    b.call_back(id(4));
    b.withdraw(id(6), false, "a grain comes first");
    b.clear();
    b.in(LauncherDown{});
    b.in(LauncherUp{true});
    std::vector<GrainId> starts, recalls;
    for (const StartGrain &e : b.take<StartGrain>()) starts.push_back(e.id);
    for (const RecallGrain &e : b.take<RecallGrain>()) recalls.push_back(e.id);
    REQUIRE(starts == std::vector<GrainId>{id(3), id(5)});
    REQUIRE(recalls == std::vector<GrainId>{id(4), id(6)});
    b.in(LauncherDown{});
    b.in(LauncherUp{false});  // of an older release: one at a time, as it has slots
    b.in(StartFailed{id(3), Code::limit, true, "no slot"});
    REQUIRE(b.state.grains.at(id(3)).phase == Phase::queued);
    b.in(StartFailed{id(4), Code::limit, true, "no slot"});
    REQUIRE(b.state.grains.count(id(4)) == 0);
}

TEST_CASE("the number of slots reaches what waits at the launcher") {
    Crowd b;
    b.message(wire::Configure{9, 1, 1});
    REQUIRE(b.take<StartGrain>().size() == 4);
    b.message(wire::Configure{9, 1, 1});
    REQUIRE(b.none<StartGrain>());
}

TEST_CASE("a host that accepts no grains, or has no slot for them, has those back that wait at the launcher") {
    Crowd b;
    b.pass(seconds(16));
    REQUIRE(b.take<RecallGrain>().size() == 4);
    b.in(GrainRecalled{id(3)});
    const auto results = b.sent<wire::LaunchResult>();
    REQUIRE_FALSE(results.empty());
    REQUIRE(static_cast<Code>(results.back().code) == Code::limit);
    Crowd shut;
    Turn t{shut.state, shut.now, 0.5, {}, {}};
    drop_queued(t, "memory is short");
    settle(t);
    REQUIRE(check(shut.state) == "");
    int recalls = 0, removed = 0;
    for (const Effect &e : t.out) {
        recalls += std::holds_alternative<RecallGrain>(e);
        removed += std::holds_alternative<RemoveDir>(e);
    }
    REQUIRE((recalls == 4 && removed == 1));
}

TEST_CASE("a staged grain comes before others that wait at the launcher") {
    Bench b;
    b.connect(9, 1);
    b.in(LauncherUp{true});
    for (int i = 1; i <= 3; ++i) {
        b.launch(id(i));
        b.in(LaunchWritten{id(i)});
    }
    REQUIRE(b.take<StartGrain>().size() == 3);
    b.in(GrainStarted{id(1)});
    b.in(StartFailed{id(3), Code::not_found, false, "no program"});
    wire::Launch m;
    m.key = wire::wire_of(id(4).key);
    m.incarnation = 1;
    m.argv = {"/bin/cat"};
    m.tentative = true;
    b.message(std::move(m));
    b.in(LaunchWritten{id(4)});
    b.in(GrainProved{id(4)});
    const StartGrain start = b.one<StartGrain>();
    REQUIRE((start.id == id(4) && start.first));
}
