// Tables that would take out every host.
#include <catch2/catch.hpp>

#include "scheduler/shell/host_table_file.h"
#include "scheduler/shell/lost_hosts.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::shell;

namespace {

// Hosts of a pool; a '+' before the name: it is connected, a '-': it has left the table.
core::State pool_of(std::initializer_list<const char *> names) {
    core::State state;
    for (const std::string name : names) {
        core::Host host;
        core::HostConfig config;
        config.name = name.substr(name[0] == '+' || name[0] == '-');
        host.config = host.table = config;
        host.configured = name[0] != '-';
        if (name[0] == '+') host.conn = ConnId{7};
        state.hosts.push_back(std::move(host));
    }
    state.running.resize(state.hosts.size());
    return state;
}

std::string refusal(std::initializer_list<const char *> pool, const char *table) {
    const auto read = parse_host_table(table, "T");
    REQUIRE(read);
    const Status s = keeps_hosts(pool_of(pool), *read, "T", true);
    return s ? "" : s.text;
}

}  // namespace

TEST_CASE("a table is refused that keeps no host, or none that is connected") {
    CHECK(refusal({}, "").empty());
    CHECK(refusal({"-h1"}, "").empty());
    CHECK(refusal({"h1"}, "") == about("T no host remove h1 put lines back dcs host rm"));
    CHECK(refusal({"+h1", "h2", "-h3", "h4", "h5", "h6"}, "class c=1\nd role=client\nb role=backup address=b:1\n") ==
          about("T no host remove h1, h2, h4 and 2 more put lines back dcs host rm"));
    CHECK(refusal({"+h1", "+h2", "h3"}, "h3\nh4\n") == about("T none connected remove h1, h2 put lines back"));
    CHECK(refusal({"+h1", "+h2", "h3"}, "h1 role=client\nh3\n") == about("T none connected remove h1, h2 put back"));
    CHECK(refusal({"+h1", "+h2", "h3"}, "h2\n").empty());
    CHECK(refusal({"h1", "h2"}, "h3\n").empty());  // none of them works
    CHECK(refusal({"-h1", "+h2"}, "h1\n") == about("T none connected remove h2 put back"));
}

TEST_CASE("a table without a host that runs grains is refused, unless they may move") {
    core::State state = pool_of({"+h1", "+h2", "-h3"});
    state.running[1] = {{{"ann", 1}, 0}, {{"ann", 1}, 1}};
    state.running[2] = {{{"ann", 1}, 2}};  // of a host that has left before
    const auto table = parse_host_table("h1\n", "T");
    REQUIRE(table);
    const Status s = keeps_hosts(state, *table, "T", false);
    CHECK(s.code == Code::refused);
    CHECK(s.text == about("T no longer lists h2 (2): put lines back dcs host drain dcs reload --move-grains"));
    CHECK(keeps_hosts(state, *table, "T", true));
    CHECK(keeps_hosts(state, *parse_host_table("h2\n", "T"), "T", false));
}

TEST_CASE("a table without the backup is refused") {
    core::State state = pool_of({"+h1"});
    state.backup_host = {"vault", "vault:7003"};
    CHECK(keeps_hosts(state, *parse_host_table("h1\n", "T"), "T", false).text ==
          about("T no longer lists the backup vault put line back dcs host rm vault"));
    CHECK(keeps_hosts(state, *parse_host_table("h1\nvault role=client\n", "T"), "T", false).text ==
          about("T no longer lists the backup vault put line back dcs reload --move-grains"));
    CHECK(keeps_hosts(state, *parse_host_table("h1\nother role=backup address=o:1\n", "T"), "T", false));
    CHECK(keeps_hosts(state, *parse_host_table("h1\n", "T"), "T", true));
}

TEST_CASE("what another table does to the hosts is said, for the audit log") {
    core::State state = pool_of({"h1", "+h2", "-h3", "+h4"});
    state.running[3] = {{{"ann", 1}, 0}};
    const auto changes = [&](const char *table) {
        const auto read = parse_host_table(table, "T");
        REQUIRE(read);
        return changes_of_hosts(state, *read);
    };
    CHECK(changes("h1\nh2\nh4\n").empty());
    CHECK(changes("h4\nh2\nh1\nclass c=1\nd role=client\n").empty());
    CHECK(changes("h1\nh2 slots=3\nh3\nh5\n") == "added h3, h5; removed h4 (1 running); changed h2");
    CHECK(changes("h1 role=client\nh2\nh4 users=ann\n") == "removed h1; changed h4");
}

TEST_CASE("a start refuses a table without hosts while grains are on hosts, and warns of one that lacks some of them") {
    core::State state = pool_of({"-h1", "-h2"});
    std::string warning;
    const auto start = [&](const char *table) {
        const auto read = parse_host_table(table, "T");
        REQUIRE(read);
        warning.clear();
        return keeps_working_hosts(state, *read, "T", warning);
    };
    CHECK(start(""));  // no grain was started
    state.running[1] = {{{"ann", 1}, 0}, {{"ann", 1}, 1}};
    CHECK(start("").code == Code::refused);
    CHECK(start("h3 role=client\n").text == about("T lists no host 2 grains started on h2 put lines back dcs host rm"));
    CHECK((start("h1\n") &&
           warning == about("T no longer lists a host 2 grains started on h2 put lines back dcs reload")));
    CHECK((start("h2\n") && warning.empty()));
    state.running[0] = {{{"ann", 2}, 0}};
    CHECK((start("h1\n") && warning == about("T no longer lists a host 2 grains started on h2")));
    CHECK((start("h1\nh2\n") && warning.empty()));
}
