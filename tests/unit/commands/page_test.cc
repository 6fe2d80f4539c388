// The parts of `dcs page` that need no socket.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "commands/dcs/page/answer.h"
#include "commands/dcs/page/html.h"
#include "commands/dcs/page/journal.h"
#include "commands/dcs/page/metrics.h"
#include "commands/dcs/page/panels.h"
#include "commands/dcs/page/series.h"
#include "commands/dcs/page/details.h"
#include "commands/dcs/session/report.h"

namespace {

using namespace dcs;
using namespace dcs::commands::page;

std::string log_of(int turns) {
    std::string log;
    for (int i = 0; i < turns; ++i) {
        wire::EventFrame frame;
        wire::Event event;
        event.kind = wire::EventKind::started;
        event.grain = i;
        event.host = "h" + std::to_string(i % 7);
        event.number = 1;
        frame.add(event);
        log += frame.framed(1000 + i);
    }
    return log;
}

wire::HostRow a_host(const std::string &name, const std::string &state, int slots, int running) {
    wire::HostRow row;
    row.name = name;
    row.state = state;
    row.slots = slots;
    row.running = running;
    row.last_call_in_s = 1;
    return row;
}

}  // namespace

TEST_CASE("a log that is read from its middle is taken up at the next whole frame") {
    const std::string log = log_of(50);
    for (std::size_t from = 0; from < log.size() - 40; ++from) {
        const std::string piece = log.substr(from);
        const std::size_t at = first_frame(piece);
        REQUIRE(at < 40);
        std::string_view left = std::string_view(piece).substr(at);
        std::vector<wire::Event> events;
        REQUIRE(wire::take_events(left, events));
        REQUIRE(left.empty());
        REQUIRE(events.back().grain == 49);
        REQUIRE((from > 0 || events.size() == 50));
    }
    REQUIRE(first_frame("") == std::string_view::npos);
    REQUIRE(first_frame(std::string(5000, '\x05')) == std::string_view::npos);
}

TEST_CASE("only names of the loopback are a Host") {
    for (const char *good : {"localhost", "localhost:8327", "127.0.0.1", "127.0.0.1:1", "[::1]:80"})
        REQUIRE(is_loopback_host(good));
    for (const char *bad :
         {"", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example", "localhost:", "localhost:x",
          "localhost:99999", "127.0.0.10", "xlocalhost", "localhost:80:80", "LOCALHOST@evil"})
        REQUIRE_FALSE(is_loopback_host(bad));
}

TEST_CASE("a target is taken only as links write it") {
    const auto target = target_of("/session/a%20b/7?after=12&state=ready");
    REQUIRE(target);
    REQUIRE(target->path == std::vector<std::string>{"session", "a b", "7"});
    REQUIRE(target->number_in_path(2) == 7);
    REQUIRE(target->number("after", -1) == 12);
    REQUIRE(target->word("state") == "ready");
    for (const char *bad : {"", "session", "/%2e%2e", "/a?b", "/%zz", "/a b", "/<script>", "/a?x=%3c"})
        REQUIRE_FALSE(target_of(bad));
    REQUIRE_FALSE(target_of("/" + std::string(2000, 'a')));
    REQUIRE_FALSE(target_of("/a/-1")->number_in_path(1));
}

TEST_CASE("foreign text is escaped in every panel") {
    Snapshot s;
    s.reachable = true;
    s.at_ms = 1;
    s.hosts = {a_host("<h>", "active", 2, 1)};
    s.hosts[0].note = "<script>";
    wire::SessionRow session;
    session.user = "<u>";
    session.state = "active";
    session.command = "<script>\"x\"";
    session.label = "&<i>";
    s.sessions = {{session}};
    const Journal journal(0);
    const std::string all = hosts_panel(s) + sessions_panel(s, journal) + head_panel(s);
    for (const char *raw : {"<script", "<h>", "<u>", "<i>", "\"x\""}) REQUIRE(all.find(raw) == std::string::npos);
    REQUIRE(all.find("&lt;script&gt;") != std::string::npos);
    REQUIRE(commands::page::count(1234567) == "1 234 567");
    REQUIRE(commands::page::count(-123) == "-123");
}

TEST_CASE("no more slots are busy than there are, though a grain waits on the host") {
    Snapshot s;
    s.reachable = true;
    s.at_ms = 1;
    s.hosts = {a_host("a", "active", 2, 3), a_host("b", "active", 2, 1)};
    CHECK(totals_of(s.hosts).busy == 3);
    CHECK(hosts_panel(s).find("3 of 4 slots busy") != std::string::npos);
    CHECK(hosts_panel(s).find("2/2 busy and 1 more") != std::string::npos);
    CHECK(metrics_of(s, HostCounters(), Journal(0), {}).text.find("state=\"busy\"} 3\n") != std::string::npos);
}

TEST_CASE("a map whose grains have all ended is done, and not active") {
    Snapshot s;
    s.reachable = true;
    s.at_ms = 1;
    wire::SessionRow row;
    row.user = "ann";
    row.state = "active";
    row.ident = "map-1";
    row.running = 1;
    row.finished = 2;
    const Journal journal(0);
    for (const bool over : {false, true}) {
        row.running = over ? 0 : 1;
        s.sessions = {{row}};
        const std::string state = over ? "done" : "active", metrics = metrics_of(s, HostCounters(), journal, {}).text;
        CHECK(sessions_panel(s, journal).find("<td>" + state + "</td>") != std::string::npos);
        CHECK(head_panel(s).find(over ? "0 active, 1 done but not closed" : "1 active<") != std::string::npos);
        CHECK(metrics.find("dcs_sessions{state=\"" + state + "\"} 1\n") != std::string::npos);
    }
}

TEST_CASE("the panels of a thousand hosts and ten thousand sessions stay small") {
    Snapshot s;
    s.reachable = true;
    for (int i = 0; i < 1000; ++i)
        s.hosts.push_back(a_host("host" + std::to_string(i), i % 50 == 0 ? "dead" : "active", 8, i % 9));
    for (int i = 0; i < 10'000; ++i) {
        wire::SessionRow row;
        row.user = "ann";
        row.session = i;
        row.state = "active";
        row.ready = 1'000'000;
        s.sessions.push_back({row});
    }
    const Journal journal(0);
    const std::string hosts = hosts_panel(s);
    REQUIRE(hosts.size() < 45'000);
    REQUIRE(hosts.find("host550") != std::string::npos);  // dead
    REQUIRE(hosts.find("host551") == std::string::npos);
    REQUIRE(sessions_panel(s, journal).size() < 40'000);
}

TEST_CASE("a counter of departures begins with all its reasons, and imported logs add none") {
    Snapshot s;
    s.has_backup = true;  // which does not answer, while the scheduler says how far its copy is
    s.copy.emplace();
    s.copy->mode = "lagging";
    s.copy->lag_s = 75;
    const std::string text = metrics_of(s, HostCounters(), Journal(0), {}).text;
    for (const char *line :
         {"dcs_grain_migrations_total{reason=\"host_dead\"} 0\n", "dcs_grain_migrations_total{reason=\"other\"} 0\n",
          "dcs_backup_reachable 0\n", "dcs_store_copy_lag_seconds 75\n"}) {
        INFO(line);
        CHECK(text.find(line) != std::string::npos);
    }
    CHECK(text.find("dcs_backup_connected") == std::string::npos);
}

TEST_CASE("no change of the host table looks like work") {
    std::vector<wire::HostRow> hosts = {a_host("a", "active", 4, 3), a_host("b", "active", 4, 1)};
    hosts[0].failed = hosts[0].launched = 500;
    hosts[1].finished = hosts[1].launched = 400;
    HostCounters counters;
    const auto now = [&] { return std::vector{counters.failed(), counters.finished(), counters.starts().at("any")}; };
    counters.take(hosts);
    CHECK(now() == std::vector<std::int64_t>{0, 0, 0});
    hosts[0].failed += 3, hosts[1].finished += 5, hosts[1].launched += 5;
    counters.take(hosts);
    CHECK(now() == std::vector<std::int64_t>{3, 5, 5});
    counters.take({hosts[1]});  // one leaves
    CHECK(now() == std::vector<std::int64_t>{3, 5, 5});
    counters.take(hosts);  // and comes back, with what it had done
    CHECK(now() == std::vector<std::int64_t>{3, 5, 5});
    hosts[1].finished -= 2;  // the scheduler was killed, and knows a little less
    counters.take(hosts);
    hosts[1].finished += 4;
    counters.take(hosts);
    CHECK(now() == std::vector<std::int64_t>{3, 9, 5});
}

TEST_CASE("a page for other hosts is for those who show its token, under the names of its certificate") {
    char base[] = "/tmp/dcs-unit-XXXXXX";
    REQUIRE(::mkdtemp(base) != nullptr);
    const std::string directory = std::string(base) + "/access";
    auto made = access_in(directory, "192.0.2.7");
    REQUIRE(made);
    const auto again = access_in(directory, "192.0.2.8");
    REQUIRE(again);
    CHECK(again->token == made->token);
    CHECK(again->certificate == made->certificate);
    CHECK(made->token.size() == 40);
    for (const char *good : {"192.0.2.7", "192.0.2.7:8327", "localhost:1", "127.0.0.1"}) CHECK(made->is_named(good));
    for (const char *bad :
         {"", "192.0.2.8", "evil.example", "localhost.evil.example", "192.0.2.7:", "192.0.2.7:x", "[::1]:80", ":"})
        CHECK_FALSE(made->is_named(bad));
    made->token = "abcdefghijklmnopqrstuvwxyz";
    for (const char *good :
         {"Bearer abcdefghijklmnopqrstuvwxyz", "bearer  abcdefghijklmnopqrstuvwxyz",
          "Basic YW5uOmFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6", "BASIC OmFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6"})
        CHECK(made->admits(good));
    for (const char *bad :
         {"", "Bearer", "Bearer ", "Bearer abcdefghijklmnopqrstuvwxy", "Bearer abcdefghijklmnopqrstuvwxyZ",
          "abcdefghijklmnopqrstuvwxyz", "Basic abcdefghijklmnopqrstuvwxyz", "Basic ====", "Basic !!!!",
          "Basic YW5uYWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXo=", "Digest abcdefghijklmnopqrstuvwxyz"})
        CHECK_FALSE(made->admits(bad));
    AskedFor asked;
    asked.method = "GET";
    asked.target = "/page.css";
    asked.host = "192.0.2.7";
    CHECK(answer_to(asked, nullptr, true, false, &*made).status == 401);
    asked.authorization = "Bearer " + made->token;
    CHECK(answer_to(asked, nullptr, true, false, &*made).status == 200);
    asked.fetch_site = "cross-site";
    CHECK(answer_to(asked, nullptr, true, false, &*made).status == 403);
    asked.host = "evil.example";
    CHECK(answer_to(asked, nullptr, true, false, &*made).status == 421);
    REQUIRE(::chmod((directory + "/token").c_str(), 0644) == 0);
    CHECK(access_in(directory, "").status().code == Code::refused);
    REQUIRE(::unlink((directory + "/token").c_str()) == 0);
    REQUIRE(::unlink((directory + "/key.pem").c_str()) == 0);
    CHECK(access_in(directory, "").status().code == Code::invalid);
    REQUIRE(remove_tree(AT_FDCWD, base));
}

TEST_CASE("figures have one value for each label, and both formats hold the same samples") {
    Snapshot s;
    s.at_ms = 5'000;
    s.reachable = true;
    s.system.version = "1\"2\\3";
    s.hosts = {a_host("a", "active", 4, 3), a_host("b", "delinquent", 4, 1), a_host("c", "dead", 2, 0),
               a_host("d", "no_job", 0, 0)};
    HostCounters counters;
    counters.take(s.hosts);
    s.hosts[0].finished = 7;
    s.hosts[1].failed = 2;
    s.hosts[0].connected = true;
    s.hosts[1].connected = false;
    counters.take(s.hosts);
    const Journal journal(0);
    const Metrics m = metrics_of(s, counters, journal, {3, 2, 1.5});
    for (const char *line :
         {"dcs_up 1\n", "dcs_build_info{version=\"1\\\"2\\\\3\"} 1\n", "dcs_hosts{class=\"any\",state=\"late\"} 1\n",
          "dcs_hosts{class=\"any\",state=\"no_job\"} 1\n", "dcs_hosts{class=\"any\",state=\"unknown\"} 0\n",
          "dcs_slots{class=\"any\",state=\"busy\"} 4\n", "dcs_slots{class=\"any\",state=\"free\"} 1\n",
          "dcs_slots{class=\"any\",state=\"closed\"} 5\n", "dcs_grain_finishes_total{result=\"finished\"} 7\n",
          "dcs_grain_finishes_total{result=\"failed\"} 2\n", "dcs_page_watchers 2\n", "dcs_page_looks_total 3\n",
          "dcs_host_connected{host=\"a\"} 1\n", "dcs_host_connected{host=\"b\"} 0\n",
          "dcs_host_last_report_timestamp_seconds{host=\"b\"} 4\n", "dcs_grain_wait_seconds_bucket{le=\"+Inf\"} 0\n"}) {
        INFO(line);
        REQUIRE(m.text.find(line) != std::string::npos);
        REQUIRE(m.open.find(line) != std::string::npos);
    }
    REQUIRE(m.text.find("dcs_host_connected{host=\"d\"}") == std::string::npos);  // a pilot without a job
    REQUIRE(m.text.find("# TYPE dcs_page_looks_total counter\n") != std::string::npos);
    REQUIRE(m.open.find("# TYPE dcs_page_looks counter\n") != std::string::npos);
    REQUIRE(m.open.substr(m.open.size() - 6) == "# EOF\n");
}

TEST_CASE("what the scheduler measures of itself, ends of certificates and a backup on another host are figures") {
    Snapshot s;
    s.at_ms = 5'000;
    s.reachable = true;
    s.hosts = {a_host("a", "active", 4, 3), a_host("b", "active", 4, 1)};
    s.hosts[0].expires_s = 1'800'000'000;
    s.members.push_back({"lab", "client", "", true, false, 5, 1'700'000'000, {}});
    s.members.push_back({"a", "client", "", true, false, 5, 1'750'000'000, {}});
    CHECK(metrics_of(s, HostCounters(), Journal(0), {}).text.find("dcs_request_duration") == std::string::npos);
    CHECK(metrics_of(s, HostCounters(), Journal(0), {}).text.find("dcs_backup_connected") == std::string::npos);
    s.system.bounds_us = {500, 1'000'000};
    s.system.delays = {{"submit", {3, 2, 1}, 2'500'000}, {"odd", {1}, 1}, {"commit", {0, 4, 0}, 8000}};
    s.system.oldest_ready_s = 75;
    s.system.backups = {{"vault", "away", "lagging", "behind", 12}};
    const Metrics m = metrics_of(s, HostCounters(), Journal(0), {});
    for (const char *line :
         {"dcs_request_duration_seconds_bucket{call=\"submit\",le=\"0.0005\"} 3\n",
          "dcs_request_duration_seconds_bucket{call=\"submit\",le=\"1.0\"} 5\n",
          "dcs_request_duration_seconds_bucket{call=\"submit\",le=\"+Inf\"} 6\n",
          "dcs_request_duration_seconds_sum{call=\"submit\"} 2.5\n",
          "dcs_request_duration_seconds_count{call=\"submit\"} 6\n",
          "dcs_store_commit_duration_seconds_bucket{le=\"1.0\"} 4\n", "dcs_ready_queue_oldest_seconds 75\n",
          "dcs_host_certificate_end_timestamp_seconds{host=\"a\",role=\"server\"} 1800000000\n",
          "dcs_host_certificate_end_timestamp_seconds{host=\"a\",role=\"client\"} 1750000000\n",
          "dcs_host_certificate_end_timestamp_seconds{host=\"lab\",role=\"client\"} 1700000000\n",
          "dcs_backup_connected 0\n", "dcs_store_copy_lag_seconds 12\n"}) {
        INFO(line);
        CHECK(m.text.find(line) != std::string::npos);
        CHECK(m.open.find(line) != std::string::npos);
    }
    CHECK(m.text.find("odd") == std::string::npos);  // counts without bounds
    CHECK(m.text.find("end_timestamp_seconds{host=\"b\"") == std::string::npos);
    CHECK(head_panel(s).find("vault, not connected; copy of the store: lagging, behind, 12 s behind") !=
          std::string::npos);
}

TEST_CASE("throughput and queue outlive the process, and damage costs no more than what it hits") {
    Series series;
    for (int i = 0; i <= 400; ++i) series.take(1'000'000 + i * 10'000, i * 5, 3, i % 7);
    const std::int64_t now_ms = 1'000'000 + 4'000'000;
    Series later;
    later.restore(series.text(), now_ms);
    REQUIRE(later.text() == series.text());
    REQUIRE(later.ranges()[0].points.size() == series.ranges()[0].points.size());
    REQUIRE(later.ranges()[0].points.back().finished_per_minute == Approx(30));
    // The next point is of the whole time since the last one, the gap included.
    later.take(now_ms + 600'000, 400 * 5 + 100, 0, 0);
    REQUIRE(later.ranges()[0].points.back().finished_per_minute == Approx(10));
    Series other;
    other.restore(
        "nonsense\npoint 0 5 x 1 1\npoint 9 5 1 1 1\npoint -1 5 1 1 1\npoint 0 5 1000 1 1\npoint 0 4 1 1 1\n"
        "point 0 9999 1 1 1\npoint 0 6 -1 1 1\npoint 0 7 1 1 1 1\nbase 0\nbase\n\n",
        100);
    REQUIRE(other.ranges()[0].points.size() == 1);
    REQUIRE(other.ranges()[0].points[0].finished_per_minute == 1);
}

TEST_CASE("a series keeps a rate per step, and nothing before its range") {
    Series series;
    for (int i = 0; i <= 4000; ++i) series.take(1'000'000 + i * 10'000, i * 5, 3, 2);
    const Range &hour = series.ranges()[0];
    REQUIRE(hour.points.size() <= Series::points_kept + 1);
    REQUIRE(hour.points.back().finished_per_minute == Approx(30));
    REQUIRE(hour.points.back().at_ms - hour.points.front().at_ms <= 3'600'000);
    series.take(1'000'000 + 4001 * 10'000 + 60'000, 0, 0, 0);  // a host left the table with its total
    REQUIRE(series.ranges()[0].points.back().finished_per_minute == 0);
}

TEST_CASE("a browser gets the panels that have changed since what it has") {
    Published p;
    p.run = "17";
    p.number = 9;
    p.panels = {{"a", "A", "old", 3}, {"b", "B", "new", 9}};
    REQUIRE(p.update_since("17-9") == nullptr);
    REQUIRE(p.update_since("17-8")->find("\"a\"") == std::string::npos);
    REQUIRE(p.update_since("17-8")->find("\"b\":\"new\"") != std::string::npos);
    for (const char *id : {"17-2", "16-9", "", "17-99", "17-x", "-9"}) {
        INFO(id);
        REQUIRE(p.update_since(id)->find("\"a\":\"old\"") != std::string::npos);
    }
    REQUIRE(p.update_since("")->find("id: 17-9\n") == 0);
}

TEST_CASE("a report has the session's figures, what was lost, and nothing of others' markup") {
    wire::History history;
    const auto happens = [&](wire::EventKind kind, std::int64_t at_ms, std::int32_t grain, std::uint32_t number,
                             const char *host = "", const char *text = "") {
        wire::Event e;
        e.kind = kind;
        e.at_ms = at_ms;
        e.grain = grain;
        e.number = number;
        e.host = host;
        e.text = text;
        INFO(at_ms);
        REQUIRE(history.take(e) == "");
    };
    using Kind = wire::EventKind;
    happens(Kind::opened, 1000, -1, 0, "", "<prog>");
    happens(Kind::submitted, 1000, 1, 0);
    happens(Kind::started, 2000, 1, 1, "<h1>");
    happens(Kind::checkpoint, 12'000, 1, 1);
    happens(Kind::left, 15'000, 1, 0, "<h1>", "host_dead");
    happens(Kind::started, 16'000, 1, 2, "h2");
    happens(Kind::finished, 20'000, 1, 0);
    commands::Session session;
    session.user = "ann";
    session.session = 7;
    session.ident = "<prog>";
    session.state = "terminated";
    session.finished = 1;
    const std::string html = commands::report_of(session, history);
    for (const char *part : {"session ann/7", "host_dead: 1.", "<td>3.00 s</td>",
                             "<td>2 on 2 hosts, together 17 s</td>", "&lt;h1&gt;", "<svg ", "Dataflow of"}) {
        INFO(part);
        REQUIRE(html.find(part) != std::string::npos);
    }
    for (const char *part : {"<h1>\n", "<prog>", "<script", "src=", "href="})
        REQUIRE(html.find(part) == std::string::npos);
}
