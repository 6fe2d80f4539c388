// The passive backup hands over: before its servers are believed, exactly once, late or twice.
#include "pool.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

const GrainKey key{{"ann", 1}, 0};

struct Away {
    Pool pool{{host("h1", 1), host("h2", 1)}};
    ModelServer h1{pool, "h1"};
    ConnId control{}, backup{};

    Away() {
        control = pool.control("ann", "prog");
        pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, false});
        h1.connect();
        pool.ask<wire::Done>(control, wire::Gexec{1, 0, copying_grain("some input")});
        h1.read();
        REQUIRE(grain().status() == core::GrainStatus::running);
    }
    const core::Grain &grain() const { return *pool.turn->state().grain(key); }
    // What its server has given to the backup, and would say to no other party any more.
    wire::GrainReport report(std::uint32_t seq, bool ended) {
        wire::GrainReport r;
        r.key = wire::wire_of(key);
        r.incarnation = 1;
        r.first_seq = r.last_seq = seq;
        r.has_checkpoint = !ended;
        r.checkpoint = ended ? "" : "at 4;";
        r.input_position = ended ? 0 : 4;
        r.out = "out" + std::to_string(seq);
        r.ended = ended;
        return r;
    }
    void restart() {
        h1.disconnect();
        pool.restart();
        control = pool.control("ann", "prog");
        pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, false});
    }
    void backup_comes(std::uint64_t store = 7) {
        backup = pool.open(turn::Door::server, "root", true);
        pool.post(backup, wire::BackupCall{wire::opening_form, store});
        pool.pump();
        const auto sent = pool.take_sent(backup);
        REQUIRE(sent.size() == 1);
        REQUIRE(std::holds_alternative<wire::BackupKnown>(sent[0]));
    }
    void hand_over(std::uint64_t number, wire::GrainReport r) {
        pool.post(backup, wire::HandOver{"h1", number, std::move(r)});
        pool.pump();
        const auto sent = pool.take_sent(backup);
        REQUIRE(sent.size() == 1);
        REQUIRE(std::get<wire::HandOverTaken>(sent[0]).number == number);
    }
    // The server's first call, with what the backup has acknowledged; whether it was answered.
    ConnId server_comes(std::uint64_t store, std::uint64_t number, bool holds) {
        const ConnId conn = pool.open(turn::Door::server, "root", true);
        pool.post(conn, wire::HeldByBackup{store, number});
        wire::FirstCall call;
        call.host = "h1";
        if (holds) call.held = {{wire::wire_of(key), 1, 0}};
        pool.post(conn, call);
        pool.pump();
        return conn;
    }
    bool believed(ConnId conn) {
        for (const auto &message : pool.take_sent(conn))
            if (std::holds_alternative<wire::Configure>(message)) return true;
        return false;
    }
    void pass(Duration d) {
        pool.outside->clock = pool.outside->clock + d;
        pool.pump();
    }
};

}  // namespace

TEST_CASE("a server is believed when the backup has handed over what it acknowledged") {
    Away a;
    a.restart();
    const ConnId conn = a.server_comes(7, 2, true);
    CHECK_FALSE(a.believed(conn));
    a.backup_comes();
    CHECK_FALSE(a.believed(conn));
    a.hand_over(1, a.report(1, false));
    CHECK_FALSE(a.believed(conn));
    a.hand_over(2, a.report(2, false));
    CHECK(a.believed(conn));
    CHECK(a.grain().course->sequence == 2);
    CHECK(a.grain().lease == 1);
    CHECK(a.grain().status() == core::GrainStatus::running);
    a.pool.verify();
}

TEST_CASE("an end that only the backup knows is a result, though its server does not hold the grain any more") {
    Away a;
    a.restart();
    const ConnId conn = a.server_comes(7, 1, false);
    a.backup_comes();
    a.hand_over(1, a.report(1, true));
    CHECK(a.believed(conn));
    CHECK(a.grain().status() == core::GrainStatus::finished);
    CHECK(a.grain().as<core::Finished>().result_index == 0);
    a.pool.verify();
}

TEST_CASE("who never needed the backup does not wait for it") {
    Away a;
    a.restart();
    CHECK(a.believed(a.server_comes(0, 0, true)));
}

TEST_CASE("when the backup does not come, the scheduler goes on without after its patience, once") {
    Away a;
    a.restart();
    ConnId conn = a.server_comes(7, 1, false);
    CHECK_FALSE(a.believed(conn));
    a.pass(Duration{core::backup_patience.ns - 1});
    CHECK_FALSE(a.believed(conn));
    a.pass(milliseconds(2));
    CHECK(a.believed(conn));
    CHECK(a.grain().incarnation == 2);  // lost, and given to a party again
    a.pool.hang_up(conn);
    conn = a.server_comes(7, 1, false);
    CHECK(a.believed(conn));
    // What comes late is of a lease that is over.
    a.backup_comes();
    a.hand_over(1, a.report(1, true));
    CHECK(a.grain().status() != core::GrainStatus::finished);
    a.pool.verify();
}

TEST_CASE("as long as the backup brings something it is waited for") {
    Away a;
    a.restart();
    const ConnId conn = a.server_comes(7, 3, true);
    a.backup_comes();
    for (std::uint32_t n = 1; n <= 2; ++n) {
        a.pass(core::backup_patience / 2);
        a.hand_over(n, a.report(n, false));
        CHECK_FALSE(a.believed(conn));
    }
    a.hand_over(3, a.report(3, true));
    CHECK(a.believed(conn));
    CHECK(a.grain().status() == core::GrainStatus::finished);
}

TEST_CASE("a report that is handed over twice, also to the next process, changes nothing the second time") {
    Away a;
    a.restart();
    a.backup_comes();
    a.hand_over(1, a.report(1, false));
    const auto out = a.grain().course->out_length;
    a.hand_over(1, a.report(1, false));
    a.restart();
    CHECK(a.pool.turn->state().handed_over.at("h1").number == 1);
    a.backup_comes();
    a.hand_over(1, a.report(1, false));
    CHECK(a.grain().course->out_length == out);
    CHECK(a.grain().course->sequence == 1);
    // Under another name the numbers of another store begin again; the sequence decides.
    a.backup_comes(8);
    a.hand_over(1, a.report(1, false));
    CHECK(a.grain().course->sequence == 1);
    a.hand_over(2, a.report(2, false));
    CHECK(a.grain().course->sequence == 2);
    a.pool.verify();
}

TEST_CASE("a last report counts though the host was given up, as long as no other host has the grain") {
    Away a;
    a.restart();
    // No party is heard of until h1 is dead; a second at a time, or it would be our own pause.
    for (int s = 0; s < 8000 && a.grain().status() == core::GrainStatus::running; ++s) a.pass(seconds(1));
    REQUIRE(a.grain().status() == core::GrainStatus::ready);
    a.backup_comes();
    a.hand_over(1, a.report(1, false));
    CHECK(a.grain().status() == core::GrainStatus::ready);
    CHECK(a.grain().course->sequence == 1);
    a.hand_over(2, a.report(2, true));
    CHECK(a.grain().status() == core::GrainStatus::finished);
    a.pool.verify();
}

TEST_CASE("only a process of this host and owner is the backup, and it says only what a backup says") {
    Away a;
    const ConnId stranger = a.pool.open(turn::Door::server, "eve", false);
    a.pool.post(stranger, wire::BackupCall{wire::opening_form, 7});
    a.pool.pump();
    CHECK(a.pool.outside->closed.back() == stranger);
    const ConnId late = a.pool.open(turn::Door::server, "root", true);
    a.pool.post(late, wire::HandOver{"h1", 1, a.report(1, true)});
    a.pool.pump();
    CHECK(a.pool.outside->closed.back() == late);
    a.backup_comes();
    a.pool.post(a.backup, wire::CallIn{});
    a.pool.pump();
    CHECK(a.pool.outside->closed.back() == a.backup);
    CHECK(a.grain().status() == core::GrainStatus::running);
}

TEST_CASE("a useless report counts by its number") {
    Away a;
    a.restart();
    const ConnId conn = a.server_comes(7, 1, true);
    a.backup_comes();
    a.hand_over(1, wire::GrainReport{});
    CHECK(a.believed(conn));
    CHECK(a.grain().course->sequence == 0);
}
