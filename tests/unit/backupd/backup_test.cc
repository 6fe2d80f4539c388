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

}  // namespace

TEST_CASE("a report is acknowledged after its commit, in the order of its host, under the next number") {
    Bench b;
    b.server(1, "h1");
    b.run();
    REQUIRE(b.all<wire::BackupReady>(1).size() == 1);
    CHECK(b.all<wire::BackupReady>(1)[0].number == 0);
    b.post(1, report_of(1, 1));
    b.post(1, report_of(1, 2));
    b.begin();
    CHECK(b.committing());
    CHECK(b.all<wire::BackupHas>(1).empty());
    b.run();
    const auto has = b.all<wire::BackupHas>(1);
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
    b.server(1, "h1");
    b.post(1, report_of(1, 1));
    b.post(1, report_of(1, 1));
    b.post(1, report_of(1, 2, true));
    b.post(1, report_of(1, 2, true));
    wire::GrainReport nothing = report_of(2, 1);
    nothing.last_seq = 0;
    b.post(1, nothing);
    b.post(1, wire::CallIn{});
    b.run();
    const auto has = b.all<wire::BackupHas>(1);
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
    b.server(1, "h1");
    b.server(2, "h2");
    for (std::uint32_t seq = 1; seq <= 3; ++seq) {
        b.post(1, report_of(1, seq));
        b.post(2, report_of(2, seq));
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
    b.server(1, "h1");
    for (std::uint32_t seq = 1; seq <= 3; ++seq) b.post(1, report_of(1, seq));
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
    b.server(1, "h1");
    b.run();
    CHECK(b.all<wire::BackupReady>(1)[0].number == 3);
    CHECK(b.state().store == 71);
}

TEST_CASE("an answer of an earlier connection forgets nothing") {
    Bench b;
    b.server(1, "h1");
    b.post(1, report_of(1, 1));
    b.run();
    b.scheduler_comes();
    b.scheduler_goes();
    b.post(Bench::scheduler_conn, wire::HandOverTaken{"h1", 1});
    b.run();
    CHECK(b.state().reports == 1);
}

TEST_CASE("more than it may hold is refused clearly, and taken when there is room") {
    Bench b(2000);
    b.server(1, "h1");
    b.post(1, report_of(1, 1, false, 1000));
    b.post(1, report_of(1, 2, false, 1000));
    b.run();
    auto has = b.all<wire::BackupHas>(1);
    REQUIRE(has.size() == 2);
    CHECK(has[0].ack.verdict == Verdict::taken);
    CHECK(has[1].ack.verdict == Verdict::later);
    CHECK(has[1].number == 1);
    CHECK(b.state().full);
    CHECK(b.state().counters.refused == 1);
    b.scheduler_comes();
    b.post(Bench::scheduler_conn, wire::HandOverTaken{"h1", 1});
    b.run();
    b.post(1, report_of(1, 2, false, 1000));
    b.run();
    has = b.all<wire::BackupHas>(1);
    CHECK(has.back().ack.verdict == Verdict::taken);
    CHECK(has.back().number == 2);
    CHECK(!b.state().full);
}

TEST_CASE("on a full disk nothing is acknowledged, and what was handed over still goes") {
    Bench b;
    b.server(1, "h1");
    b.post(1, report_of(1, 1, false, 5000));
    b.run();
    b.scheduler_comes();
    b.disk.set_capacity(b.disk.used_bytes());
    b.post(1, report_of(1, 2, false, 5000));
    b.post(Bench::scheduler_conn, wire::HandOverTaken{"h1", 1});
    b.run();
    CHECK(b.all<wire::BackupHas>(1).back().ack.verdict == Verdict::later);
    CHECK(b.state().reports == 0);
    CHECK(check(b.state()).empty());
    b.disk.set_capacity(~0ull);
    b.post(1, report_of(1, 2, false, 5000));
    b.run();
    CHECK(b.all<wire::BackupHas>(1).back().ack.verdict == Verdict::taken);
    CHECK(b.all<wire::BackupHas>(1).back().number == 2);
    REQUIRE(b.start().empty());
    CHECK(b.state().reports == 1);
}

TEST_CASE("no more than a window is on its way") {
    Bench b(1u << 30);
    b.server(1, "h1");
    for (int grain = 0; grain < 400; ++grain) b.post(1, report_of(grain, 1, true));
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
    b.server(1, "h1");
    b.post(1, report_of(1, 1));
    b.post(1, report_of(1, 2));
    b.run();
    const std::string log = *b.disk.read("hosts/h1/log", 0, 10'000);
    b.disk.flip("hosts/h1/log", log.find("at 1"), 1);
    b.scheduler_comes();
    const auto list = b.all<wire::HandOver>(Bench::scheduler_conn);
    REQUIRE(list.size() == 2);
    CHECK(list[0].number == 1);
    CHECK(list[0].report.key.user.empty());
    CHECK(list[1].report.checkpoint == "at 2");
}

TEST_CASE("a damaged log costs its reports, damaged numbers the name of the store") {
    Bench b;
    b.server(1, "h1");
    b.server(2, "h2");
    b.post(1, report_of(1, 1));
    b.post(2, report_of(2, 1));
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
    b.server(1, "h1");
    b.post(1, report_of(1, 2));
    b.run();
    CHECK(b.all<wire::BackupHas>(1).back().ack.verdict == Verdict::taken);
    CHECK(b.all<wire::BackupHas>(1).back().number == 1);
}

TEST_CASE("nonsense closes its connection, and a question is answered") {
    Bench b;
    b.post(5, wire::Gkill{"ann", 1, 1});
    b.post(6, wire::AskBackup{}, 9);
    wire::FirstCall other;
    other.protocol = 99;
    other.host = "h1";
    b.post(7, other);
    b.run();
    CHECK(b.closed == std::vector<ConnId>{5, 7});
    REQUIRE(b.all<wire::BackupStatus>(6).size() == 1);
    CHECK(b.sent[0].request == 9);
    CHECK(b.all<wire::BackupStatus>(6)[0].most_bytes == 1u << 20);
    // A host has one link: the newer one.
    b.server(1, "h1");
    b.server(2, "h1");
    b.run();
    CHECK(b.closed.back() == 1);
    b.post(1, report_of(1, 1));
    b.run();
    CHECK(b.state().reports == 0);
}

}  // namespace dcs::backup
