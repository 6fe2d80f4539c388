// The ladder: the scheduler a few times, then the backup, and back to the scheduler when it answers.
#include "core_bench.h"

using namespace bench;

namespace {

struct WithBackup : Bench {
    WithBackup() { state.has_backup = true; }

    // The scheduler was there and refuses all connections from now on: to the first call of the backup.
    void lose_scheduler() {
        in(LinkClosed{"refused"});
        for (int i = 1; i < tries_before_backup; ++i) {
            pass(seconds(9));
            REQUIRE(one<Connect>().to == Peer::scheduler);
            in(LinkClosed{"refused"});
        }
        REQUIRE(one<Connect>().to == Peer::backup);
        in(LinkOpened{});
    }
    void reach_backup(std::uint64_t number = 0) {
        lose_scheduler();
        REQUIRE(sent<wire::HeldByBackup>().empty());
        REQUIRE(sent<wire::FirstCall>().size() == 1);
        message(wire::BackupReady{7, number});
    }
    void backup_ack(const GrainId &g, std::uint64_t number, unsigned last, bool ended,
                    wire::Verdict verdict = wire::Verdict::taken) {
        message(wire::BackupHas{7, number, wire::ReportAck{wire::wire_of(g.key), g.incarnation, last, ended, verdict}});
    }
    // A grain that has ended and whose last report is due.
    void end_grain() {
        connect();
        run_grain(id());
        exit(id(), dir({{1, 5}}), ExitFacts{});
        clear();
    }
};

}  // namespace

TEST_CASE("the backup is called after some failures in a row, and told nothing of what is held") {
    WithBackup b;
    b.end_grain();
    b.lose_scheduler();
    const auto calls = b.sent<wire::FirstCall>();
    REQUIRE(calls.size() == 1);
    REQUIRE(calls[0].host == "h1");
    REQUIRE(calls[0].held.empty());
    REQUIRE(b.none<SendReport>());
    b.message(wire::BackupReady{7, 0});
    REQUIRE(b.state.link == Link::ready);
    const SendReport report = b.one<SendReport>();
    REQUIRE(report.ended);
    REQUIRE(b.none<Gauge>());  // load is of no interest to it
}

TEST_CASE("without a backup there is only the scheduler") {
    Bench b;
    b.connect();
    b.in(LinkClosed{"refused"});
    for (int i = 0; i < 6; ++i) {
        b.pass(seconds(9));
        for (const Connect &c : b.take<Connect>()) REQUIRE(c.to == Peer::scheduler);
        b.in(LinkClosed{"refused"});
    }
    REQUIRE(b.state.peer == Peer::scheduler);
}

TEST_CASE("the number is saved before what it is about is forgotten, and said to the scheduler") {
    WithBackup b;
    b.end_grain();
    b.reach_backup(4);
    b.one<SendReport>();
    b.backup_ack(id(), 5, 1, true);
    std::size_t save = 0, removal = 0;
    for (std::size_t i = 0; i < b.out.size(); ++i) {
        if (std::holds_alternative<SaveConfig>(b.out[i])) save = i + 1;
        if (std::holds_alternative<RemoveDir>(b.out[i])) removal = i + 1;
    }
    REQUIRE(save > 0);
    REQUIRE(removal > save);
    REQUIRE(b.state.backup_store == 7);
    REQUIRE(b.state.backup_number == 5);
    b.clear();
    b.pass(seconds(9) + seconds(5));
    b.one<Disconnect>();
    REQUIRE(b.one<Connect>().to == Peer::scheduler);
    b.clear();
    b.in(LinkOpened{});
    REQUIRE(b.out.size() == 2);
    REQUIRE(std::holds_alternative<wire::HeldByBackup>(std::get<Send>(b.out[0]).message));
    const auto held = b.sent<wire::HeldByBackup>();
    REQUIRE(held.size() == 1);
    REQUIRE(held[0].store == 7);
    REQUIRE(held[0].number == 5);
    REQUIRE(b.sent<wire::FirstCall>().size() == 1);
    b.message(wire::Configure{9, 2, 1});
    REQUIRE(b.state.backup_number == 0);
    REQUIRE(b.take<SaveConfig>().size() == 1);
}

TEST_CASE("it leaves the backup when its answer came, and returns to it when the scheduler does not answer") {
    WithBackup b;
    b.end_grain();
    b.reach_backup();
    b.one<SendReport>();
    b.pass(seconds(9) + seconds(5));  // time to try the scheduler, but a report is under way
    REQUIRE(b.state.leaving);
    REQUIRE(b.none<Disconnect>());
    b.backup_ack(id(), 1, 1, true);
    b.one<Disconnect>();
    REQUIRE(b.one<Connect>().to == Peer::scheduler);
    b.clear();
    b.in(LinkClosed{"refused"});
    REQUIRE(b.one<Connect>().to == Peer::backup);
    REQUIRE_FALSE(b.state.leaving);
}

TEST_CASE("a missing answer does not keep a server with the backup") {
    WithBackup b;
    b.end_grain();
    b.reach_backup();
    b.clear();
    b.pass(seconds(9) + seconds(5) + link_patience);
    b.one<Disconnect>();
    REQUIRE(b.take<Connect>().front().to == Peer::scheduler);
    REQUIRE_FALSE(b.state.grains.at(id()).outstanding.has_value());
}

TEST_CASE("when the backup is full the report stays and is repeated, when both are gone they take turns") {
    WithBackup b;
    b.end_grain();
    b.reach_backup();
    b.one<SendReport>();
    b.backup_ack(id(), 0, 1, true, wire::Verdict::later);
    REQUIRE(b.state.backup_number == 0);
    REQUIRE(b.state.grains.at(id()).hold);
    b.clear();
    b.in(LinkClosed{"gone"});
    std::vector<Peer> called;
    for (int i = 0; i < 6; ++i) {
        b.pass(seconds(12));
        for (const Connect &c : b.take<Connect>()) called.push_back(c.to);
        b.in(LinkClosed{"refused"});
    }
    REQUIRE(std::count(called.begin(), called.end(), Peer::backup) >= 2);
    REQUIRE(std::count(called.begin(), called.end(), Peer::scheduler) >= 2);
    REQUIRE(b.state.grains.count(id()) == 1);
}

TEST_CASE("what the wrong one of the two says ends its connection") {
    WithBackup b;
    b.end_grain();
    b.reach_backup();
    b.clear();
    b.ack(id(), 1, true, wire::Verdict::taken);  // as only the scheduler may
    b.one<Disconnect>();
    REQUIRE(b.state.grains.count(id()) == 1);
    WithBackup c;
    c.end_grain();
    c.backup_ack(id(), 1, 1, true);
    c.one<Disconnect>();
    REQUIRE(c.state.grains.count(id()) == 1);
}

TEST_CASE("a backup of another host is the one that the scheduler names, and remembered") {
    Bench b;
    b.connect();
    b.message(wire::BackupPlace{"vault", "vault:7002", "key"});  // this server's scheduler is on its own host
    REQUIRE_FALSE(b.state.has_backup);
    b.state.asks_for_backup = true;
    b.clear();
    b.message(wire::BackupPlace{"vault", "vault:7002", "key"});
    REQUIRE(b.state.has_backup);
    REQUIRE(b.state.backup_place.address == "vault:7002");
    REQUIRE(b.take<SaveConfig>().size() == 1);
    b.message(wire::BackupPlace{"vault", "vault:7002", "key"});
    REQUIRE(b.none<SaveConfig>());
    b.message(wire::BackupPlace{});
    REQUIRE_FALSE(b.state.has_backup);
    REQUIRE(b.take<SaveConfig>().size() == 1);
}

TEST_CASE("a backup that refuses this server is like one that does not answer") {
    WithBackup b;
    b.end_grain();
    b.lose_scheduler();
    b.message(wire::Refused{"your key does not count"});
    REQUIRE(b.state.link == Link::greeting);
    b.in(LinkClosed{"the peer closed"});
    REQUIRE(b.state.link == Link::down);
    REQUIRE(b.state.peer == Peer::scheduler);
    REQUIRE_FALSE(b.state.grains.empty());
}
