// Batches through the whole of a turn: one commit, all or none, also on a full disk and after a restart.
#include <set>

#include "pki/digest.h"
#include "pool.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

struct Working {
    Pool pool{{host("h1", 4)}};
    ModelServer server{pool, "h1"};
    ConnId control{};
    Working() {
        pool.verify_each_turn = true;
        server.connect();
        begin();
    }
    void begin(bool sent_reset = false) {
        control = pool.control("ann", "prog");
        pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, sent_reset});
    }
    std::size_t grains() const { return pool.turn->state().session({"ann", 1})->grains.size(); }
    wire::ErrorReply error(const wire::AnyMessage &call) {
        const auto reply = pool.call(control, call);
        REQUIRE(std::holds_alternative<wire::ErrorReply>(reply));
        return std::get<wire::ErrorReply>(reply);
    }
};

wire::GexecMany batch(GrainNumber first, GrainNumber end, const std::string &input = "some input") {
    wire::GexecMany call{1, {}};
    for (GrainNumber g = first; g < end; ++g) call.orders.push_back({g, copying_grain(input + std::to_string(g))});
    return call;
}

}  // namespace

TEST_CASE("a thousand grains are one commit, and their results come back in few calls") {
    Working w;
    const std::size_t before = w.pool.commits;
    w.pool.ask<wire::Done>(w.control, batch(0, 1000));
    CHECK(w.pool.commits == before + 1);
    std::size_t calls = 0;
    std::set<GrainNumber> seen;
    std::int32_t next = 0;
    w.pool.verify_each_turn = false;
    while (next < 1000) {
        for (int i = 0; i < 40; ++i) {
            w.server.read();
            while (!w.server.held.empty()) w.server.finish(w.server.held.begin()->first), w.server.read();
        }
        ++calls;
        const auto reply = w.pool.ask<wire::GrainResults>(w.control, wire::GwaitMany{1, next, 300, false});
        REQUIRE(reply.results.size() <= 300);
        for (const wire::GrainResult &r : reply.results) {
            CHECK(r.out == "some input" + std::to_string(r.grain));
            CHECK(r.err == shifted(r.out));
            CHECK(seen.insert(r.grain).second);
            CHECK(r.sent == ++next);
        }
    }
    CHECK(calls == 4);
    w.pool.verify();
}

TEST_CASE("a batch is in the store as a whole or not at all") {
    Working w;
    w.pool.ask<wire::Done>(w.control, batch(0, 3));
    const std::string before = Pool::durable_text(w.pool.turn->state());
    w.pool.store->flush();
    w.pool.disk.set_capacity(w.pool.disk.used_bytes());
    const wire::ErrorReply full = w.error(batch(2, 40));
    CHECK((full.code == static_cast<int>(Code::no_space) && full.grain == -1));
    CHECK(Pool::durable_text(w.pool.turn->state()) == before);
    w.pool.disk.set_capacity(~0ull);
    w.pool.ask<wire::Done>(w.control, batch(2, 40));
    w.pool.restart();
    CHECK(w.grains() == 40);
    w.begin();
    // Cut otherwise after the restart: the same run.
    w.pool.ask<wire::Done>(w.control, batch(0, 33));
    w.pool.ask<wire::Done>(w.control, batch(33, 41));
    CHECK(w.grains() == 41);
}

TEST_CASE("a refused batch names its grain, a party that finds what is wrong") {
    Working w;
    w.pool.ask<wire::Done>(w.control, batch(0, 3));
    wire::GexecMany call = batch(3, 9);
    call.orders[4].spec.argv.clear();
    wire::ErrorReply e = w.error(call);
    CHECK((e.code == static_cast<int>(Code::invalid) && e.grain == 7 && e.text.find("grain 7: argv[0]") == 0));
    call = batch(3, 9);
    call.orders[1].spec.files = {{wire::FileRole::input, "", pki::sha256_text("nowhere"), 7, ""}};
    call.orders[1].spec.input.clear();
    e = w.error(call);
    CHECK((e.code == static_cast<int>(Code::not_found) && e.grain == 4));
    call = batch(1, 9);
    call.orders[1].spec.argv.push_back("more");
    e = w.error(call);
    CHECK((e.code == static_cast<int>(Code::grain_differs) && e.grain == 2));
    CHECK(e.text.find("grain ann/1:2 was submitted with other parameters:\nargv") == 0);
    CHECK(w.grains() == 3);
    e = w.error(wire::GexecMany{1, {}});
    CHECK((e.code == static_cast<int>(Code::invalid) && e.grain == -1));
}

TEST_CASE("a result that cannot be read ends a reply, the next call meets it") {
    Working w;
    w.pool.ask<wire::Done>(w.control, batch(0, 4));
    w.server.read();
    for (const GrainNumber g : {0, 1, 2, 3}) w.server.finish({{"ann", 1}, g}), w.server.read();
    w.pool.store->flush();
    w.pool.verify_each_turn = false;
    w.pool.disk.flip("sessions/ann/1/results", 2 * 2 * 11 + 3, 1);  // of the third
    const auto reply = w.pool.ask<wire::GrainResults>(w.control, wire::GwaitMany{1, 0, 9, false});
    REQUIRE(reply.results.size() == 2);
    CHECK(w.error(wire::GwaitMany{1, 2, 9, false}).code == static_cast<int>(Code::io_error));
    CHECK(w.pool.ask<wire::GrainResults>(w.control, wire::GwaitMany{1, 3, 9, false}).results.size() == 1);
}

TEST_CASE("batches count by their grains: a turn of one user's stays short") {
    Working w;
    w.pool.verify_each_turn = false;
    const std::size_t before = w.pool.commits;
    for (GrainNumber n = 0; n < 10; ++n) w.pool.post(w.control, batch(n * 1000, n * 1000 + 1000, "x"));
    w.pool.pump();
    CHECK(w.pool.commits == before + 4);  // 3000 each, his share of a turn, then the rest
    CHECK(w.grains() == 10'000);
}
