// How much processor time a running grain got, and why little.
#include "pool.h"
#include "scheduler/core/reasons.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::core;

TEST_CASE("of a running grain: how much processor time it got, and why little") {
    Pool pool(1);
    const Program ann = pool.begin("ann", "find");
    pool.open(ann, 1);
    pool.gexec(ann, 1, 0);
    pool.launched("h1", "ann/1:0");
    const auto summary = [&] { return pool.explain("ann/1:0").summary; };
    const auto starved = [&] {
        for (const wire::WhyRow &row : pool.explain("ann/1:0").reasons)
            if (row.reason == reason_of(Why::starved).word) return true;
        return false;
    };
    CHECK(summary() == "it runs on h1");  // no report yet
    pool.used("h1", "ann/1:0", 19, 1);
    CHECK(summary() == "it runs on h1: 19.0 s of processor time in 20.0 s, as of 0.0 s ago");
    pool.used("h1", "ann/1:0", 19.1, 1);
    CHECK(summary() == about("19.1 s in 40.0 s load 1.0 itself waits"));
    CHECK_FALSE(starved());
    pool.used("h1", "ann/1:0", 19.2, 3);
    CHECK(summary() == about("19.2 s in 60.0 s busy load 3.0 other programs first"));
    CHECK(starved());
    pool.end("h1", "ann/1:0", 1);  // the next run is another one
    pool.launched("h1", "ann/1:0");
    CHECK(summary() == "it runs on h1");
}
