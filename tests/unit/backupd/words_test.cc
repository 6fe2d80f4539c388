// What the backup says of what is wrong, word for word: to peers, in the log, and about what lies on its disk.
#include <algorithm>
#include <functional>
#include <limits>

#include "backupd/record/record.h"
#include "base/bytes.h"
#include "support/about.h"
#include "support/catch.h"
#include "unit/backupd/bench.h"

namespace dcs::backup {
namespace {

struct Nonsense {
    const char *words;
    wire::AnyMessage message;
    Guest guest = {};
};

std::vector<Nonsense> all_nonsense() {
    wire::FirstCall nameless, liar;
    liar.host = "h2";
    wire::GrainReport endless = report_of(1, 1);
    endless.last_seq = std::numeric_limits<std::uint32_t>::max();
    const Guest h1{"h1", TokenHash{1}};
    return {{"a server without a name", nameless},
            {"the certificate is of host h1, but the server reports as h2", liar, h1},
            {"this query is permitted only on this host", wire::AskBackup{}, h1},
            {"a report whose number leaves no room for a next one", endless},
            {"Gkill is not for a backup", wire::Gkill{"ann", 1, 1}}};
}

}  // namespace

TEST_CASE("whose connection is closed for nonsense is in the log with the reason") {
    Bench b;
    std::uint64_t conn = 10;
    for (const Nonsense &n : all_nonsense()) {
        INFO(n.words);
        b.post(ConnId{++conn}, n.message, 1, n.guest);
        b.run();
        const std::string wanted = "connection " + std::to_string(conn) + ": " + n.words;
        CHECK(std::count(b.lines.begin(), b.lines.end(), wanted) == 1);
        CHECK(b.closed.back() == ConnId{conn});
    }
}

TEST_CASE("a server that does not count is told why") {
    Bench b;
    const auto refused = [&](ConnId conn) {
        wire::FirstCall call;
        call.host = "h1";
        b.post(conn, call, 0, Guest{"h1", TokenHash{1}});
        b.run();
        const auto all = b.all<wire::Refused>(conn);
        REQUIRE(all.size() == 1);
        return all[0].text;
    };
    CHECK(refused(ConnId{1}) == about("scheduler not backup"));
    b.scheduler_comes();
    b.post(Bench::scheduler_conn, wire::MemberKeys{{{"h2", std::string(32, 'k')}}});
    b.run();
    CHECK(refused(ConnId{2}) == about("certificate h1 not"));
}

TEST_CASE("a damaged head of a record is called what it is") {
    const std::string good = *record::pack(report_of(1, 1));
    const auto wrong = [](std::string bytes) {
        std::string_view rest = bytes;
        const auto head = record::next_head(rest);
        return head ? "" : head.status().text;
    };
    const auto sealed = [](const std::string &text) {  // with a length and a checksum that are right
        ByteWriter w;
        w.u32(static_cast<std::uint32_t>(text.size()));
        w.u32(crc32c(text));
        w.raw(text);
        return std::move(w.bytes());
    };
    const std::string head = good.substr(8, static_cast<unsigned char>(good[0]));
    CHECK(wrong(good).empty());
    CHECK(wrong(sealed(head)).empty());
    CHECK(wrong("") == "a record without a head");
    CHECK(wrong(std::string(8, '\xff')) == "a record without a head");
    std::string flipped = good;
    flipped[9] ^= 1;
    CHECK(wrong(flipped) == about("record's wrong checksum"));
    CHECK(wrong(sealed("\x7f" + head.substr(1))) == "a record of another format");
    CHECK(wrong(sealed(head + "x")) == about("record's cannot decoded"));
    CHECK(wrong(sealed(head.substr(0, 5))) == about("record's cannot decoded"));
}

TEST_CASE("a damaged file of a host's numbers is called what it is") {
    HostReports host;
    host.last = 9;
    host.forgotten = 4;
    const std::string good = record::encode_host(host);
    const auto wrong = [](const std::string &bytes) {
        const auto read = record::decode_host(bytes);
        return read ? "" : read.status().text;
    };
    const auto sealed = [](const std::string &bytes) {
        ByteWriter sum;
        sum.u32(crc32c(bytes));
        return bytes + sum.bytes();
    };
    const std::string fields = good.substr(0, good.size() - 4);
    CHECK(wrong(good).empty());
    CHECK(wrong(sealed(fields)).empty());
    CHECK(wrong("abc") == "it is truncated");
    CHECK(wrong(good.substr(0, good.size() - 1)) == "its checksum is wrong");
    CHECK(wrong("x" + good.substr(1)) == "its checksum is wrong");
    CHECK(wrong(sealed("\x7f" + fields.substr(1))) == "it has another format");
    host.forgotten = 10;
    CHECK(wrong(record::encode_host(host)) == "its numbers are inconsistent");
}

TEST_CASE("a log with less than its numbers say is told of when it is read again") {
    Bench b;
    b.server(ConnId{1}, "h1");
    b.post(ConnId{1}, report_of(1, 1));
    b.run();
    b.flush();
    const std::string path = "hosts/h1/log";
    const std::string log = *b.disk.read(path, 0, 10'000);
    SECTION("a record that goes on behind the end") {
        HostReports host = *b.state().host("h1");
        host.log_length -= 1;
        REQUIRE(b.disk.truncate_append("hosts/h1/state", 0, record::encode_host(host)));
        REQUIRE(b.start().empty());
        REQUIRE(b.reports.size() == 1);
        CHECK(b.reports[0] == about("hosts/h1 reports scheduler's"));
    }
    SECTION("a body that was damaged is not handed over") {
        b.disk.flip(path, log.size() - 1, 1);
        b.scheduler_comes();
        const std::string wanted =
            "report 1 of h1 on ann/1:1 is lost: a checksum is wrong; the grain runs again "
            "from the scheduler's state";
        CHECK(std::count(b.lines.begin(), b.lines.end(), wanted) == 1);
    }
}

// What tests ask after each change has words of its own for each way in which the books can be wrong.
TEST_CASE("a State whose books do not agree is found out") {
    const auto good = [] {
        State state;
        HostReports host;
        host.last = 3;
        host.forgotten = 1;
        host.log_length = 20;
        host.held.push_back({2, {{"ann", 1}, 1}, 1, 1, 1, false, 0, 10});
        host.held.push_back({3, {{"ann", 1}, 1}, 1, 2, 2, false, 10, 10});
        load_host(state, "h1", std::move(host));
        return state;
    };
    const auto h1 = [](State &s) -> HostReports & { return s.hosts.at("h1"); };
    const struct {
        const char *words;
        std::function<void(State &)> harm;
    } table[] = {
        {"", [](State &) {}},
        {"host h1 reports order", [&](State &s) { h1(s).held[1].number = 2; }},
        {"host h1 reports order", [&](State &s) { h1(s).last = 2; }},
        {"host h1: records overlap", [&](State &s) { h1(s).held[1].offset = 9; }},
        {"host h1 log ends record", [&](State &s) { h1(s).log_length = 19; }},
        {"host h1 log without reports", [&](State &s) { h1(s).held.clear(); }},
        {"host h1 forgotten not", [&](State &s) { h1(s).sent = 0; }},
        {"host h1 unsent", [&](State &s) { s.unsent.clear(); }},
        {"host h1 lease not", [&](State &s) { h1(s).newest.clear(); }},
        {"bytes reports counted", [&](State &s) { s.bytes += 1; }},
        {"reports transfer counted", [&](State &s) { s.sent_reports += 1; }},
        {"reports without connection", [&](State &s) { h1(s).sent = 2, s.sent_reports = 1, s.sent_bytes = 10; }},
    };
    for (const auto &row : table) {
        State state = good();
        row.harm(state);
        CHECK(check(state).empty() == std::string(row.words).empty());
        CHECK(check(state) == about(row.words));
    }
}

}  // namespace dcs::backup
