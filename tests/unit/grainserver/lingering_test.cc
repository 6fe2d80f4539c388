// Grains that the scheduler has given up, and whose processes have not ended.
#include "core_bench.h"

using namespace bench;

namespace {
void launch(Bench &b, const GrainId &g, int memory_mb, int cores) {
    wire::Launch m = Bench::launch_of(g);
    m.demands.memory_mb = memory_mb;
    m.demands.cores = cores;
    b.message(m);
    b.in(LaunchWritten{g});
}
std::vector<GrainId> starts(Bench &b) {
    std::vector<GrainId> ids;
    for (const StartGrain &start : b.take<StartGrain>()) ids.push_back(start.id);
    return ids;
}
using Ids = std::vector<GrainId>;
}  // namespace

TEST_CASE("what a killed grain demanded is another's when its processes have ended") {
    Bench b;
    b.connect(9, 4);
    b.in(LauncherUp{});
    SECTION("it demanded memory, or several cores") {
        const bool memory = GENERATE(true, false);
        launch(b, id(1), memory ? 1000 : 0, memory ? 0 : 2);
        CHECK(starts(b) == Ids{id(1)});
        b.in(GrainStarted{id(1)});
        b.withdraw(id(1), true, "killed by its control program");
        b.one<TerminateGrain>();
    }
    SECTION("it was being ended when its server started") {
        Adopted a;
        a.id = id(1);
        a.large = a.started = true;
        a.ending = server::Ending::discard;
        b.in(std::move(a));
    }
    launch(b, id(2), 500, 0);
    launch(b, id(3), 0, 1);
    launch(b, id(4), 0, 3);
    CHECK(starts(b) == Ids{id(3)});
    b.in(GrainExited{id(1), {}});
    CHECK(starts(b) == Ids{id(2), id(4)});
}

TEST_CASE("a killed grain that demanded only a slot, and one that the scheduler waits for, hold up no other") {
    Bench b;
    b.connect(9, 4);
    b.in(LauncherUp{});
    const bool large = GENERATE(true, false);
    launch(b, id(1), large ? 1000 : 0, 0);
    b.in(GrainStarted{id(1)});
    b.withdraw(id(1), !large, "");
    starts(b);
    launch(b, id(2), 500, 2);
    CHECK(starts(b) == Ids{id(2)});
}
