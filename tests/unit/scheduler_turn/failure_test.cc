// Commits that fail: before they happened (nothing), and in doubt (unknown).
#include "pool.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

const GrainKey the_grain{{"ann", 1}, 0};

struct FullDisk {
    Pool pool{{host("h1", 1), host("h2", 1)}};
    ModelServer server{pool, "h1"};
    ConnId control{};
    FullDisk() {
        control = pool.control("ann", "prog");
        pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, false});
        server.connect();
        pool.ask<wire::Done>(control, wire::Gexec{1, 0, copying_grain("some input")});
        server.read();
    }
    void fill_disk() {
        pool.store->flush();
        pool.disk.set_capacity(pool.disk.used_bytes());
    }
    void free_disk() { pool.disk.set_capacity(~0ull); }
};

}  // namespace

TEST_CASE("a full disk: the call fails, nothing is changed, service goes on by itself") {
    FullDisk w;
    const std::string before = Pool::durable_text(w.pool.turn->state());
    w.fill_disk();
    CHECK(w.pool.refusal(w.control, wire::Gexec{1, 1, copying_grain("more")}) == Code::no_space);
    CHECK(w.pool.refusal(w.control, wire::OpenSession{2}) == Code::no_space);
    CHECK(w.pool.refusal(w.control, wire::GetAuth{"other"}) == Code::no_space);
    CHECK(Pool::durable_text(w.pool.turn->state()) == before);
    w.pool.verify();
    // Reading works all the time.
    wire::Query query;
    query.type = wire::QueryType::sessions;
    CHECK(w.pool.ask<wire::QueryReply>(w.control, query).sessions.size() == 1);
    w.free_disk();
    w.pool.ask<wire::Done>(w.control, wire::Gexec{1, 1, copying_grain("more")});
    w.pool.verify();
}

TEST_CASE("a full disk: a grain with a file of its own is not there either") {
    FullDisk w;
    const std::string before = Pool::durable_text(w.pool.turn->state());
    w.fill_disk();
    wire::GrainSpec big = copying_grain("big");
    big.input.assign(200000, 'x');
    CHECK(w.pool.refusal(w.control, wire::Gexec{1, 1, big}) == Code::no_space);
    CHECK(Pool::durable_text(w.pool.turn->state()) == before);
    CHECK(w.pool.turn->state().grain({the_grain.session, 1}) == nullptr);
    w.pool.verify();
}

TEST_CASE("a full disk: the server keeps its report and brings it again") {
    FullDisk w;
    w.fill_disk();
    w.server.checkpoint(the_grain, 4);
    REQUIRE(w.server.held[the_grain].unacknowledged);
    auto sent = w.pool.take_sent(w.server.conn());
    REQUIRE(sent.size() == 1);
    CHECK(std::get<wire::ReportAck>(sent[0]).verdict == wire::Verdict::later);
    CHECK(w.pool.turn->state().grain(the_grain)->course->sequence == 0);
    // A call-in is a sign of life even if no slot can be filled.
    w.pool.outside->clock = w.pool.outside->clock + seconds(1);
    w.server.call_in();
    CHECK(w.pool.turn->state().hosts[0].last_contact == w.pool.outside->clock);
    w.free_disk();
    w.server.repeat();
    sent = w.pool.take_sent(w.server.conn());
    REQUIRE(!sent.empty());
    CHECK(std::get<wire::ReportAck>(sent[0]).verdict == wire::Verdict::taken);
    CHECK(w.pool.turn->state().grain(the_grain)->course->sequence == 1);
    w.pool.verify();
}

TEST_CASE("a full disk: a free slot stays free until there is room") {
    FullDisk w;
    w.pool.ask<wire::Done>(w.control, wire::Gexec{1, 1, copying_grain("waits")});
    w.fill_disk();
    ModelServer second(w.pool, "h2");
    second.connect();  // the first call is accepted, the lease is not
    second.read();
    CHECK(second.connected());
    CHECK(second.held.empty());
    CHECK(w.pool.turn->state().hosts[1].status == core::HostStatus::active);
    w.free_disk();
    second.call_in();
    second.read();
    CHECK(second.held.size() == 1);
    w.pool.verify();
}

TEST_CASE("a full disk: a server that lost grains must call again") {
    FullDisk w;
    w.fill_disk();
    w.server.disconnect();
    w.server.held.clear();
    w.server.connect();
    w.server.read();
    CHECK_FALSE(w.server.connected());
    CHECK(w.pool.turn->state().grain(the_grain)->status() == core::GrainStatus::running);
    w.free_disk();
    w.server.connect();
    w.server.read();
    CHECK(w.server.connected());
    CHECK(w.server.held.size() == 1);
    CHECK(w.server.held[the_grain].incarnation == 2);
}

TEST_CASE("a full disk: dead hosts and failed launches are not forgotten") {
    FullDisk w;
    const std::size_t commits = w.pool.commits;
    SECTION("a dead host") {
        w.fill_disk();
        for (int i = 0; i < 5; ++i) {
            w.pool.outside->clock = w.pool.turn->next_wakeup();
            w.pool.pump();
        }
        CHECK(w.pool.commits < commits + 6);  // tried at a measured pace
        CHECK(w.pool.turn->state().grain(the_grain)->status() == core::GrainStatus::running);
        w.free_disk();
        w.pool.outside->clock = w.pool.turn->next_wakeup();
        w.pool.pump();
        CHECK(w.pool.turn->state().hosts[0].status == core::HostStatus::dead);
    }
    SECTION("a failed launch") {
        w.fill_disk();
        const wire::LaunchResult no{wire::wire_of(the_grain), 1, false, false, static_cast<int>(Code::not_found),
                                    "no such program"};
        w.pool.post(w.server.conn(), no);
        w.pool.pump();
        CHECK(w.pool.turn->state().grain(the_grain)->status() == core::GrainStatus::running);
        w.free_disk();
        w.pool.outside->clock = w.pool.turn->next_wakeup();
        w.pool.pump();
        CHECK(w.pool.turn->state().grain(the_grain)->course->nogo.get() == std::vector<core::HostId>{core::HostId{0}});
    }
    CHECK(w.pool.turn->state().grain(the_grain)->status() == core::GrainStatus::ready);
    w.pool.verify();
}

TEST_CASE("a turn that fails is taken back as a whole, its read-only calls are answered") {
    FullDisk w;
    ConnId other = w.pool.control("bob", "prog");
    w.server.finish(the_grain);
    w.server.read();
    w.pool.take_sent(w.server.conn());
    w.fill_disk();
    const std::string before = Pool::durable_text(w.pool.turn->state());
    wire::Query query;
    query.type = wire::QueryType::sessions;
    const auto submit = w.pool.post(w.control, wire::Gexec{1, 5, copying_grain("x")});
    const auto again = w.pool.post(w.control, wire::Gexec{1, 5, copying_grain("x")});
    const auto ask = w.pool.post(other, query);
    w.pool.pump();
    CHECK(Pool::durable_text(w.pool.turn->state()) == before);
    std::map<std::uint64_t, int> codes;
    for (const Sent &s : w.pool.outside->sent) {
        const auto *error = std::get_if<wire::ErrorReply>(&s.message);
        codes[s.request] = error ? error->code : 0;
    }
    CHECK(codes.size() == 3);
    CHECK(codes[submit] == static_cast<int>(Code::no_space));
    // The repetition found the grain of the first one; without it, it needs the disk itself.
    CHECK(codes[again] == static_cast<int>(Code::no_space));
    CHECK(codes[ask] == 0);
}

TEST_CASE("a failing call of the disk at any place: all or nothing, and said so") {
    for (std::uint64_t n = 1; n < 40; ++n) {
        FullDisk w;
        const std::string before = Pool::durable_text(w.pool.turn->state());
        w.pool.disk.fail_at(n, Fault::io_error, false);
        const std::uint64_t request =
            w.pool.post(w.control, wire::Gexec{1, 1, copying_grain(std::string(40'000, 'b'))});
        w.pool.pump();
        const bool hit = w.pool.disk.faults_hit() > 0;
        w.pool.disk.clear_faults();
        if (!w.pool.outside->died.empty()) {
            // In doubt: no party learned anything; the next start knows one of the two.
            CHECK(w.pool.take_sent(w.control).empty());
            w.pool.restart();
            const auto *grain = w.pool.turn->state().grain({{"ann", 1}, 1});
            if (!grain) { CHECK(Pool::durable_text(w.pool.turn->state()) == before); }
        } else {
            REQUIRE(w.pool.outside->sent.size() >= 1);
            CHECK(w.pool.outside->sent[0].request == request);
            const bool done = std::holds_alternative<wire::Done>(w.pool.outside->sent[0].message);
            CHECK(done == (w.pool.turn->state().grain({{"ann", 1}, 1}) != nullptr));
            if (!done) { CHECK(Pool::durable_text(w.pool.turn->state()) == before); }
        }
        w.pool.verify();
        if (!hit) break;
    }
}

TEST_CASE("a failed sync ends the process without a word") {
    FullDisk w;
    w.pool.disk.fail_syncs(true);
    w.pool.post(w.control, wire::Gexec{1, 1, copying_grain("x")});
    w.pool.pump();
    CHECK_FALSE(w.pool.outside->died.empty());
    CHECK(w.pool.outside->sent.empty());
    w.pool.post(w.control, wire::Gexec{1, 2, copying_grain("x")});
    w.pool.pump();
    CHECK(w.pool.outside->sent.empty());
    CHECK(w.pool.turn->next_wakeup() == Instant::never());
}
