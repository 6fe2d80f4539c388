// Limits of each grain, which the server of a host sets.
#include "exceed_limit.h"
#include "scheduler/core/explain.h"
#include "scheduler/core/placement.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::core;

TEST_CASE("a grain goes to no host whose server lets a grain have less memory than it demands") {
    Pool pool;
    pool.add_host("h1", 1).memory_mb = 8192;  // by the host table
    pool.add_host("h2", 2).memory_mb = 8192;
    pool.table();
    const auto says = [&](const std::string &host, std::int64_t limit_mb) { return pool.limits(host, {limit_mb}); };
    for (const char *host : {"h1", "h2"}) {
        pool.first_call(host);
        says(host, 64);
    }
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    SubmitGrain g = Pool::grain(1, 0);
    g.demands.memory_mb = 300;
    CHECK(pool.call(find, g) == Lines{"ann: done"});
    CHECK(says("h2", 0) == Lines{"h2: launch ann/1:0 inc 1 next 1"});
    g.grain = 1;
    g.demands.memory_mb = 64;
    CHECK(pool.call(find, g) == Lines{"ann: done", "h1: launch ann/1:1 inc 1 next 1"});
    CHECK(pool.end("h2", "ann/1:0", 0) == Lines{"h2: ack ann/1:0 inc 1 last 1 ended taken"});
    CHECK(pool.end("h1", "ann/1:1", 0) == Lines{"h1: ack ann/1:1 inc 1 last 1 ended taken"});
    // No host permits it any more, and one does again when its server was started with another limit.
    CHECK(says("h2", 100).empty());
    g.grain = 2;
    g.demands.memory_mb = 300;
    CHECK(pool.call(find, g) == Lines{"ann: done"});
    CHECK(pool.gwait(find, 1, 2, true) ==
          Lines{"ann: error CANNOT_RUN: no host can run the remaining grains of session ann/1; for grain 2: 2 hosts "
                "configured, 2 whose limit for a grain's memory is too low"});
    pool.first_call("h1");
    CHECK(says("h1", 300) == Lines{"h1: launch ann/1:2 inc 1 next 1"});
}

TEST_CASE("a grain that broke a limit of one host's server is tried where more is permitted") {
    Pool pool;
    for (const char *name : {"h1", "h2", "h3"}) pool.add_host(name);
    pool.table();
    const auto says = [&](const std::string &host, std::int64_t memory_mb, std::int64_t file_mb) {
        pool.first_call(host);
        pool.limits(host, {memory_mb, 512, 0, file_mb, 0});
    };
    says("h1", 64, 10);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    const auto broke = [&](const std::string &host, int signal, bool of_host = true) {
        wire::GrainReport r = pool.end_report("ann/1:0", 0, signal);
        r.limit = true;
        r.limit_of_host = of_host;
        r.reason = "the grain used more";
        return pool.send(host, r);
    };
    const std::string acknowledged = ": ack ann/1:0 inc 1 last 1 ended taken";
    SubmitGrain g = Pool::grain(1, 0);
    g.demands.attempts = 1;
    SECTION("of memory that it did not demand") {
        pool.call(find, g);
        says("h2", 64, 0);
        says("h3", 128, 10);
        CHECK(broke("h1", 9) == Lines{"h1" + acknowledged, "h3: launch ann/1:0 inc 2 next 1"});
        CHECK(pool.at("ann/1:0").course->moves->back().reason == MoveReason::host_limit);
        CHECK(pool.at("ann/1:0").course->nogo.get() == std::vector<HostId>{HostId{0}, HostId{1}});
        CHECK(pool.at("ann/1:0").course->failures == 0);
        broke("h3", 9);  // no host permits more
        CHECK(pool.status("ann/1:0") == "finished");
        CHECK(pool.at("ann/1:0").course->moves->back().reason == MoveReason::over_limit);
    }
    SECTION("of a file's size") {
        pool.call(find, g);
        says("h2", 64, 0);
        CHECK(broke("h1", 25) == Lines{"h1" + acknowledged, "h2: launch ann/1:0 inc 2 next 1"});
    }
    SECTION("but not one that is its own, or that the others have too") {
        const int signal = GENERATE(9, 24, 25);
        const bool own = GENERATE(true, false);
        if (signal == 9) g.demands.memory_mb = 32;
        pool.call(find, g);
        if (own) says("h2", 128, 0);
        else says("h2", 64, 10);
        const bool of_host = !own || signal == 9;  // a demand of memory is a limit of the launcher's, too
        CHECK(broke("h1", signal, of_host) == Lines{"h1" + acknowledged});
        CHECK(pool.status("ann/1:0") == "finished");
    }
}

TEST_CASE("a grain that exceeded a host's limit: which limit of which host, and not to try it there again") {
    Pool pool{1};
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    exceed_limit(pool, find);
    const wire::Explanation e = pool.explain("ann/1:0", true);
    const wire::WhyRow *row = nullptr;
    for (const wire::WhyRow &any : e.reasons)
        if (any.reason == "host_limit") row = &any;
    REQUIRE(row);
    CHECK(row->names == std::vector<std::string>{"h1"});
    CHECK(row->hint == about("submit uses less raise limit --max-memory-mb"));
    CHECK(row->hint.find("clear-nogo") == std::string::npos);
    CHECK(e.summary == about("1 host_limit on h1 used more than 64 MB memory"));
    // A host whose limit is no higher was never tried, and is avoided for the same reason.
    Grain g = pool.at("ann/1:0");
    g.course.edit().nogo = std::vector<HostId>{HostId{0}, HostId{1}};
    CHECK(why_nogo(g, HostId{1}) == Why::host_limit);
}

TEST_CASE("a silent host that comes back does not go on with a grain which broke a limit that is no lower there") {
    Pool pool;
    pool.add_host("h1");
    pool.table();
    pool.first_call("h1");
    pool.limits("h1", {64});
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    pool.launched("h1", "ann/1:0");
    pool.hang_up("h1");
    pool.add_host("h2");
    pool.table();
    pool.first_call("h2");
    while (pool.at("ann/1:0").lessee != pool.id("h2")) {
        pool.wait(seconds(10));
        pool.limits("h2", {64});
    }
    pool.launched("h2", "ann/1:0");
    pool.add_host("h3");
    pool.table();
    pool.first_call("h3");
    pool.limits("h3", {128});
    pool.gexec(find, 1, 99);  // it waits for h3
    wire::GrainReport r = pool.end_report("ann/1:0", 0, 9);
    r.limit = r.limit_of_host = true;
    r.reason = "the grain used more than its 64 MB memory";
    pool.send("h2", r);
    CHECK(pool.status("ann/1:0") == "ready");
    pool.first_call("h1", {{"ann/1:0", 1, 5000}});
    CHECK(pool.status("ann/1:0") == "ready");
    CHECK(pool.at("ann/1:0").course->old_lease == OldLease{});
    pool.end("h3", "ann/1:99", 0);
    CHECK(pool.at("ann/1:0").lessee == pool.id("h3"));
}
