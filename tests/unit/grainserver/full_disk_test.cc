// A host whose disk is full takes no work.
#include "core_bench.h"
#include "support/about.h"

using namespace bench;

TEST_CASE("a host accepts no grains while the disk of its grains is full") {
    Bench b;
    b.connect(9, 1);
    b.run_grain(id(1));
    b.launch(id(2));
    b.in(LaunchWritten{id(2)});  // waits for a slot
    b.clear();
    const auto gauge = [&](bool full) { b.in(Gauged{0.5, 4096, false, 8192, full}); };
    gauge(true);
    CHECK(b.sent<wire::CallIn>().back().shut == about("disk full"));
    CHECK(b.state.grains.count(id(2)) == 0);
    CHECK(b.state.grains.at(id(1)).ending == Ending::none);  // it may yet end well
    b.launch(id(3));
    const auto said = b.sent<wire::LaunchResult>();
    REQUIRE_FALSE(said.empty());
    CHECK(said.back().text == about("accepts no grains disk full"));
    gauge(false);
    CHECK(b.sent<wire::CallIn>().back().shut.empty());
    b.launch(id(3));
    CHECK(b.state.grains.count(id(3)) == 1);
}
