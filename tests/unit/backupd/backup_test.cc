#include "unit/backupd/bench.h"

#include "support/catch.h"

namespace dcs::backup {
namespace {

using wire::Verdict;

std::vector<std::pair<std::string, std::uint64_t>> handed_over(const Bench &b) {
    std::vector<std::pair<std::string, std::uint64_t>> list;
    for (const auto &h : b.all<wire::HandOver>(Bench::scheduler_conn)) list.emplace_back(h.host, h.number);
    return list;
}

void hold_two_reports(Bench &b) {
    b.server(ConnId{1}, "h1");
    b.post(ConnId{1}, report_of(1, 1));
    b.post(ConnId{1}, report_of(1, 2));
    b.run();
}

}  // namespace

TEST_CASE("a report is acknowledged after its commit, in the order of its host, under the next number") {
    Bench b;
    b.server(ConnId{1}, "h1");
    b.run();
    REQUIRE(b.all<wire::BackupReady>(ConnId{1}).size() == 1);
    CHECK(b.all<wire::BackupReady>(ConnId{1})[0].number == 0);
    b.post(ConnId{1}, report_of(1, 1));
    b.post(ConnId{1}, report_of(1, 2));
    b.begin();
    CHECK(b.committing());
    CHECK(b.all<wire::BackupHas>(ConnId{1}).empty());
    b.run();
    const auto has = b.all<wire::BackupHas>(ConnId{1});
    REQUIRE(has.size() == 2);
    CHECK(has[0].number == 1);
    CHECK(has[1].number == 2);
    CHECK(has[1].store == b.state().store);
    CHECK(has[1].ack.verdict == Verdict::taken);
    CHECK(has[1].ack.last_seq == 2);
    CHECK(check(b.state()).empty());
}

TEST_CASE("what comes twice is held once, and what is not new is not held at all") {
    Bench b;
    b.server(ConnId{1}, "h1");
    b.post(ConnId{1}, report_of(1, 1));
    b.post(ConnId{1}, report_of(1, 1));
    b.post(ConnId{1}, report_of(1, 2, true));
    b.post(ConnId{1}, report_of(1, 2, true));
    wire::GrainReport nothing = report_of(2, 1);
    nothing.last_seq = 0;
    b.post(ConnId{1}, nothing);
    b.post(ConnId{1}, wire::CallIn{});
    b.run();
    const auto has = b.all<wire::BackupHas>(ConnId{1});
    REQUIRE(has.size() == 4);
    CHECK(has[1].ack.verdict == Verdict::have_it);
    CHECK(has[1].ack.last_seq == 1);
    CHECK(!has[1].ack.ended);
    CHECK(has[3].ack.verdict == Verdict::have_it);
    CHECK(has[3].ack.ended);
    CHECK(b.state().reports == 2);
    CHECK(check(b.state()).empty());
}

TEST_CASE("the scheduler gets each host's reports in order, and what it has is forgotten") {
    Bench b;
    b.server(ConnId{1}, "h1");
    b.server(ConnId{2}, "h2");
    for (std::uint32_t seq = 1; seq <= 3; ++seq) {
        b.post(ConnId{1}, report_of(1, seq));
        b.post(ConnId{2}, report_of(2, seq));
    }
    b.run();
    b.scheduler_comes();
    const auto list = handed_over(b);
    REQUIRE(list.size() == 6);
    CHECK(std::count(list.begin(), list.end(), std::pair<std::string, std::uint64_t>{"h1", 3}) == 1);
    CHECK(b.all<wire::HandOver>(Bench::scheduler_conn)[0].report.checkpoint == "at 1");
    std::uint64_t last[2] = {0, 0};
    for (const auto &[host, number] : list) CHECK(number == ++last[host == "h2"]);
    CHECK(b.state().reports == 6);
    b.post(Bench::scheduler_conn, wire::HandOverTaken{"h1", 3});
    b.run();
    CHECK(b.state().reports == 3);
    CHECK(b.disk.size("hosts/h1/log").status().code == Code::ok);
    CHECK(*b.disk.size("hosts/h1/log") == 0);
    CHECK(check(b.state()).empty());
}

TEST_CASE("what was not answered is handed over again on the next connection, and by the next process") {
    Bench b;
    b.server(ConnId{1}, "h1");
    for (std::uint32_t seq = 1; seq <= 3; ++seq) b.post(ConnId{1}, report_of(1, seq));
    b.run();
    b.scheduler_comes();
    b.post(Bench::scheduler_conn, wire::HandOverTaken{"h1", 1});
    b.run();
    b.scheduler_goes();
    b.sent.clear();
    b.scheduler_comes();
    CHECK(handed_over(b) == std::vector<std::pair<std::string, std::uint64_t>>{{"h1", 2}, {"h1", 3}});
    REQUIRE(b.start().empty());
    CHECK(b.reports.empty());
    b.scheduler_comes();
    CHECK(handed_over(b) == std::vector<std::pair<std::string, std::uint64_t>>{{"h1", 2}, {"h1", 3}});
    b.server(ConnId{1}, "h1");
    b.run();
    CHECK(b.all<wire::BackupReady>(ConnId{1})[0].number == 3);
    CHECK(b.state().store == 71);
}

TEST_CASE("an answer of an earlier connection forgets nothing") {
    Bench b;
    b.server(ConnId{1}, "h1");
    b.post(ConnId{1}, report_of(1, 1));
    b.run();
    b.scheduler_comes();
    b.scheduler_goes();
    b.post(Bench::scheduler_conn, wire::HandOverTaken{"h1", 1});
    b.run();
    CHECK(b.state().reports == 1);
}

TEST_CASE("more than it may hold is refused clearly, and taken when there is room") {
    Bench b(2000);
    b.server(ConnId{1}, "h1");
    b.post(ConnId{1}, report_of(1, 1, false, 1000));
    b.post(ConnId{1}, report_of(1, 2, false, 1000));
    b.run();
    auto has = b.all<wire::BackupHas>(ConnId{1});
    REQUIRE(has.size() == 2);
    CHECK(has[0].ack.verdict == Verdict::taken);
    CHECK(has[1].ack.verdict == Verdict::later);
    CHECK(has[1].number == 1);
    CHECK(b.state().full);
    CHECK(b.state().counters.refused == 1);
    b.scheduler_comes();
    b.post(Bench::scheduler_conn, wire::HandOverTaken{"h1", 1});
    b.run();
    b.post(ConnId{1}, report_of(1, 2, false, 1000));
    b.run();
    has = b.all<wire::BackupHas>(ConnId{1});
    CHECK(has.back().ack.verdict == Verdict::taken);
    CHECK(has.back().number == 2);
    CHECK(!b.state().full);
}

TEST_CASE("on a full disk nothing is acknowledged, and what was handed over still goes") {
    Bench b;
    b.server(ConnId{1}, "h1");
    b.post(ConnId{1}, report_of(1, 1, false, 5000));
    b.run();
    b.scheduler_comes();
    b.disk.set_capacity(b.disk.used_bytes());
    b.post(ConnId{1}, report_of(1, 2, false, 5000));
    b.post(Bench::scheduler_conn, wire::HandOverTaken{"h1", 1});
    b.run();
    CHECK(b.all<wire::BackupHas>(ConnId{1}).back().ack.verdict == Verdict::later);
    CHECK(b.state().reports == 0);
    CHECK(check(b.state()).empty());
    b.disk.set_capacity(~0ull);
    b.post(ConnId{1}, report_of(1, 2, false, 5000));
    b.run();
    CHECK(b.all<wire::BackupHas>(ConnId{1}).back().ack.verdict == Verdict::taken);
    CHECK(b.all<wire::BackupHas>(ConnId{1}).back().number == 2);
    REQUIRE(b.start().empty());
    CHECK(b.state().reports == 1);
}

TEST_CASE("no more than a window is on its way") {
    Bench b(1u << 30);
    b.server(ConnId{1}, "h1");
    for (int grain = 0; grain < 400; ++grain) b.post(ConnId{1}, report_of(grain, 1, true));
    b.run();
    b.scheduler_comes();
    CHECK(handed_over(b).size() == limits::hand_over_reports);
    b.post(Bench::scheduler_conn, wire::HandOverTaken{"h1", 200});
    b.run();
    CHECK(handed_over(b).size() == 400);
    CHECK(b.state().sent_reports == 200);
    CHECK(check(b.state()).empty());
}

TEST_CASE("a damaged record is handed over as nothing, under its number") {
    Bench b;
    hold_two_reports(b);
    const std::string log = *b.disk.read("hosts/h1/log", 0, 10'000);
    b.disk.flip("hosts/h1/log", log.find("at 1"), 1);
    b.scheduler_comes();
    const auto list = b.all<wire::HandOver>(Bench::scheduler_conn);
    REQUIRE(list.size() == 2);
    CHECK(list[0].number == 1);
    CHECK(list[0].report.key.user.empty());
    CHECK(list[1].report.checkpoint == "at 2");
}

TEST_CASE("a report that cannot be read for lack of descriptors is handed over later") {
    Bench b;
    hold_two_reports(b);
    b.disk.fail_at(1, test::Fault::limit, true);
    b.scheduler_comes();
    CHECK(b.all<wire::HandOver>(Bench::scheduler_conn).empty());
    b.disk.clear_faults();
    b.scheduler_goes();
    b.sent.clear();
    b.scheduler_comes();
    const auto list = b.all<wire::HandOver>(Bench::scheduler_conn);
    REQUIRE(list.size() == 2);
    CHECK(list[0].report.checkpoint == "at 1");
    CHECK(list[1].report.checkpoint == "at 2");
}

TEST_CASE("a damaged log costs its reports, damaged numbers the name of the store") {
    Bench b;
    b.server(ConnId{1}, "h1");
    b.server(ConnId{2}, "h2");
    b.post(ConnId{1}, report_of(1, 1));
    b.post(ConnId{2}, report_of(2, 1));
    b.run();
    const std::uint64_t name = b.state().store;
    b.flush();
    b.disk.flip("hosts/h1/log", 2, 1);
    REQUIRE(b.start().empty());
    CHECK(b.reports.size() == 1);
    CHECK(b.state().store == name);
    CHECK(b.state().reports == 1);
    CHECK(b.state().host("h1")->last == 1);
    b.flush();
    b.disk.flip("hosts/h1/state", 2, 1);
    REQUIRE(b.start().empty());
    CHECK(b.state().store != name);
    CHECK(b.state().reports == 1);
    b.server(ConnId{1}, "h1");
    b.post(ConnId{1}, report_of(1, 2));
    b.run();
    CHECK(b.all<wire::BackupHas>(ConnId{1}).back().ack.verdict == Verdict::taken);
    CHECK(b.all<wire::BackupHas>(ConnId{1}).back().number == 1);
}

TEST_CASE("nonsense closes its connection, and a question is answered") {
    Bench b;
    b.post(ConnId{5}, wire::Gkill{"ann", 1, 1});
    b.post(ConnId{6}, wire::AskBackup{});
    b.run();
    CHECK(b.closed == std::vector<ConnId>{ConnId{5}});
    REQUIRE(b.all<wire::BackupStatus>(ConnId{6}).size() == 1);
    CHECK(b.sent[0].request == wire::offer_of(wire::our_forms));
    CHECK(b.all<wire::BackupStatus>(ConnId{6})[0].most_bytes == 1u << 20);
    // A host has one link: the newer one.
    b.server(ConnId{1}, "h1");
    b.server(ConnId{2}, "h1");
    b.run();
    CHECK(b.closed.back() == ConnId{1});
    b.post(ConnId{1}, report_of(1, 1));
    b.run();
    CHECK(b.state().reports == 0);
}

TEST_CASE("a server of another host is believed if the scheduler has said that its key counts") {
    Bench b;
    const Guest h1{"h1", TokenHash{1}}, old{"h1", TokenHash{9}}, h2{"h2", TokenHash{2}};
    const auto calls = [&](ConnId conn, const Guest &guest, const std::string &name) {
        wire::FirstCall call;
        call.host = name;
        b.post(conn, call, 0, guest);
        b.run();
        return !b.all<wire::BackupReady>(conn).empty();
    };
    const auto told = [&](std::vector<wire::MemberKey> members) {
        b.post(Bench::scheduler_conn, wire::MemberKeys{std::move(members)});
        b.run();
    };
    const auto bytes = [](const Guest &g) { return std::string(g.key->begin(), g.key->end()); };
    CHECK_FALSE(calls(ConnId{1}, h1, "h1"));
    CHECK(b.all<wire::Refused>(ConnId{1}).size() == 1);
    b.post(ConnId{1}, report_of(1, 1), 0, h1);  // what it says all the same is not held
    b.run();
    CHECK(b.state().reports == 0);
    b.scheduler_comes();
    told({{"h1", bytes(h1)}, {"h2", bytes(h2)}});
    REQUIRE(b.saved.size() == 1);
    CHECK(b.saved[0].size() == 2);
    told({{"h1", bytes(h1)}, {"h2", bytes(h2)}});
    CHECK(b.saved.size() == 1);
    CHECK(calls(ConnId{2}, h1, "h1"));
    CHECK(calls(ConnId{3}, h2, "h2"));
    CHECK_FALSE(calls(ConnId{4}, old, "h1"));
    CHECK(b.all<wire::BackupReady>(ConnId{2}).size() == 1);
    CHECK_FALSE(calls(ConnId{5}, h2, "h1"));  // another party's name
    CHECK_FALSE(calls(ConnId{6}, Guest{"h3", TokenHash{3}}, "h3"));
    CHECK(calls(ConnId{7}, {}, "h4"));            // of this host, known by the kernel
    b.post(ConnId{2}, wire::AskBackup{}, 1, h1);  // is asked on this host only
    b.run();
    CHECK(b.closed.back() == ConnId{2});
    // It is removed from the pool: its link ends, what it has given stays.
    b.post(ConnId{3}, report_of(1, 1), 0, h2);
    b.run();
    told({{"h1", bytes(h1)}});
    CHECK(b.closed.back() == ConnId{3});
    b.post(ConnId{3}, report_of(1, 2), 0, h2);
    b.run();
    CHECK(b.state().reports == 1);
    CHECK(b.saved.back().size() == 1);
}

TEST_CASE("a scheduler that refuses the backup is tried again, a certificate that it sends goes to who asked for it") {
    Bench b;
    b.scheduler_comes();
    b.post(Bench::scheduler_conn, wire::Renewed{"fresh"});
    b.run();
    CHECK(b.certificates == std::vector<std::string>{"fresh"});
    b.post(Bench::scheduler_conn, wire::Refused{"not you"});
    b.run();
    CHECK(b.closed.back() == Bench::scheduler_conn);
    CHECK(b.state().link == Link::down);
    CHECK(b.state().link_at > b.clock);
}

}  // namespace dcs::backup
