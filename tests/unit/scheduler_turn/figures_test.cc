// What the scheduler measures of itself: since when grains wait, and how long calls and commits take.
#include <numeric>

#include "pool.h"
#include "scheduler/turn/figures.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

wire::SystemRow system_of(Pool &pool, ConnId conn) { return pool.ask<wire::QueryReply>(conn, wire::Query{}).system; }

std::uint64_t count_of(const wire::SystemRow &row, const std::string &what) {
    for (const wire::DelayRow &delay : row.delays)
        if (delay.what == what) return std::accumulate(delay.counts.begin(), delay.counts.end(), std::uint64_t{0});
    return 0;
}

ConnId program_with_session(Pool &pool) {
    const ConnId control = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(control, wire::OpenSession{3, wire::OpenMode::resume, true});
    return control;
}

void let_pass(Pool &pool, int s) { pool.outside->clock = pool.outside->clock + seconds(s); }

}  // namespace

TEST_CASE("the oldest waiting grain is known, whatever is submitted after it") {
    Pool pool({host("h1", 1)});
    const ConnId control = program_with_session(pool);
    CHECK(system_of(pool, control).oldest_ready_s == 0);
    pool.ask<wire::Done>(control, wire::Gexec{3, 1, copying_grain("first")});
    CHECK(system_of(pool, control).oldest_ready_s == 0);
    let_pass(pool, 100);
    pool.ask<wire::Done>(control, wire::Gexec{3, 2, copying_grain("second")});
    CHECK(system_of(pool, control).oldest_ready_s == Approx(100));
    let_pass(pool, 50);
    CHECK(system_of(pool, control).oldest_ready_s == Approx(150));

    ModelServer server(pool, "h1");
    server.connect();
    server.read();
    REQUIRE(server.held.count({{"ann", 3}, 1}) == 1);
    CHECK(system_of(pool, control).oldest_ready_s == Approx(50));  // the second one
    server.finish({{"ann", 3}, 1});
    server.read();
    CHECK(system_of(pool, control).oldest_ready_s == 0);
}

TEST_CASE("a queue that grows for long is remembered in few marks, and no grain seems younger by that") {
    Pool pool({host("h1", 1)});
    const ConnId control = program_with_session(pool);
    for (int i = 0; i < 200; ++i) {
        pool.ask<wire::Done>(control, wire::Gexec{3, i, copying_grain("x")});
        CHECK(system_of(pool, control).oldest_ready_s == Approx(10 * i));
        let_pass(pool, 10);
    }
    pool.ask<wire::Done>(control, wire::CloseSession{"ann", 3, -1});
    CHECK(system_of(pool, control).oldest_ready_s == 0);
}

TEST_CASE("calls, reports and commits are counted by how long they took") {
    Pool pool({host("h1", 1)});
    const ConnId control = program_with_session(pool);
    const wire::SystemRow before = system_of(pool, control);
    REQUIRE(before.bounds_us.size() == turn::Figures::bounds_us.size());
    REQUIRE(before.delays.size() == 6);
    for (const wire::DelayRow &row : before.delays) CHECK(row.counts.size() == before.bounds_us.size() + 1);
    const std::uint64_t request = pool.post(control, wire::Gexec{3, 1, copying_grain("first")});
    let_pass(pool, 3);  // it waits for its turn
    pool.pump();
    CHECK(std::holds_alternative<wire::Done>(pool.reply(control, request)));
    const wire::SystemRow after = system_of(pool, control);
    CHECK(count_of(after, "submit") == count_of(before, "submit") + 1);
    CHECK(count_of(after, "query") == count_of(before, "query") + 1);
    CHECK(count_of(after, "commit") > count_of(before, "commit"));
    for (const wire::DelayRow &row : after.delays) {
        if (row.what != "submit") continue;
        CHECK(row.sum_us == 3'000'000);
        CHECK(row.counts[after.bounds_us.size() - 1] == 1);  // above 2.5 seconds, and not above 10
    }
    ModelServer server(pool, "h1");
    server.connect();
    server.read();
    server.finish({{"ann", 3}, 1});
    server.read();
    CHECK(count_of(system_of(pool, control), "report") >= 1);
    CHECK(pool.ask<wire::QueryReply>(control, wire::Query{wire::QueryType::hosts}).system.delays.empty());
}

TEST_CASE("the pool's row has the backup of the host table, and how far its copy of the store is") {
    Pool pool({host("h1", 1)});
    const ConnId control = pool.control("ann", "prog");
    CHECK(system_of(pool, control).backups.empty());
    pool.outside->copy.mode = "off";
    CHECK(system_of(pool, control).backups.empty());
    pool.outside->copy.mode = "lagging", pool.outside->copy.state = "behind", pool.outside->copy.lag_s = 2.5;
    wire::SystemRow row = system_of(pool, control);  // a process of this host
    REQUIRE(row.backups.size() == 1);
    CHECK(row.backups[0].name.empty());
    CHECK(row.backups[0].copy == "behind");
    core::HostConfig vault;
    vault.name = "vault";
    vault.backup_at = "vault:7003";
    pool.turn->take_host_table({host("h1", 1), vault});
    pool.pump();
    row = system_of(pool, control);
    REQUIRE(row.backups.size() == 1);
    CHECK(row.backups[0].name == "vault");
    CHECK(row.backups[0].state == "not_joined");
    CHECK(row.backups[0].mode == "lagging");
    CHECK(row.backups[0].lag_s == 2.5);
}
