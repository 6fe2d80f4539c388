// The host table's file.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

#include "scheduler/keeper/settings_file.h"
#include "scheduler/shell/host_table_file.h"
#include "scheduler/shell/settings_text.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;

TEST_CASE("a host table line says what it says") {
    const auto hosts = shell::parse_host_table(
        "# pool\n"
        "local1 class=0x1 binary=x86_64-linux-gnu slots=1 interval=10 alert=30 limit=60 "
        "extended=120 users=ann,bob\n"
        "\t \r\n"
        "plain#only the name is required\n"
        "fast class=6 interval=0.5 alert=1.5 limit=3 extended=6 slots=0",
        "hosts");
    REQUIRE(hosts);
    REQUIRE(hosts->size() == 3);
    const core::HostConfig &first = (*hosts)[0];
    CHECK(first.name == "local1");
    CHECK(first.host_class == 1);
    CHECK(first.binary_class == "x86_64-linux-gnu");
    CHECK(first.slots == 1);
    CHECK(first.interval == seconds(10));
    CHECK(first.alert == seconds(30));
    CHECK(first.limit == seconds(60));
    CHECK(first.extended == seconds(120));
    CHECK(first.users == std::vector<std::string>{"ann", "bob"});
    core::HostConfig plain;
    plain.name = "plain";
    CHECK((*hosts)[1] == plain);
    CHECK((*hosts)[2].host_class == 6);
    CHECK((*hosts)[2].slots == 0);
    CHECK((*hosts)[2].interval == milliseconds(500));
    CHECK(shell::parse_host_table("", "hosts")->empty());
    // A host of control programs; it may be a grain server's too, by another line.
    const auto both =
        shell::parse_host_table("h1 role=server slots=2\nh1 role=client users=ann\nd2 role=client\n", "hosts");
    REQUIRE(both);
    REQUIRE(both->size() == 3);
    CHECK_FALSE(both->at(0).source);
    CHECK(both->at(1).source);
    CHECK(both->at(1).users == std::vector<std::string>{"ann"});
    CHECK(both->at(2).users.empty());
    for (const char *wrong : {"h1 role=both", "h1 role=client slots=1", "h1 role=client\nh1 role=client", "h1 role="})
        CHECK_FALSE(shell::parse_host_table(wrong, "hosts"));
    const auto backup = shell::parse_host_table("h1\nh1 role=backup address=vault.example:7002", "hosts");
    REQUIRE(backup);
    CHECK(backup->at(0).backup_at.empty());
    CHECK(backup->at(1).backup_at == "vault.example:7002");
    for (const char *wrong :
         {"b role=backup", "b role=backup address=vault", "b address=vault:1", "b role=backup address=vault:1 slots=1",
          "b role=client address=vault:1", "b role=backup address=a:1\nc role=backup address=a:2"})
        CHECK_FALSE(shell::parse_host_table(wrong, "hosts"));
    const auto more = shell::parse_host_table(
        "h cores=8 memory=16384 check=h,10.0.0.1:22 fileserver=nfs-1.example.org:2049 gateway=[fe80::1%eth0],[::1]:9",
        "hosts");
    REQUIRE(more);
    for (const auto &[memory, mb] :
         std::map<std::string, int>{{"16G", 16384}, {"512M", 512}, {"1T", 1 << 20}, {"0", 0}}) {
        const auto sized = shell::parse_host_table("h memory=" + memory, "hosts");
        REQUIRE(sized);
        CHECK(sized->at(0).memory_mb == mb);
    }
    const auto pilots = shell::parse_host_table("a pilot=yes\nb pilot=no\nc", "hosts");
    REQUIRE(pilots);
    CHECK((pilots->at(0).pilot && !pilots->at(1).pilot && !pilots->at(2).pilot));
    const auto open = shell::parse_host_table("h require_confinement=scope,accounts", "hosts");
    REQUIRE(open);
    CHECK(open->at(0).require_confinement == 5);
    const core::HostConfig &h = more->at(0);
    const auto zones = shell::parse_host_table("a time_zone_offset=+330\nb time_zone_offset=-60\nc", "hosts");
    REQUIRE(zones);
    CHECK(zones->at(0).time_zone_offset == 330);
    CHECK(zones->at(1).time_zone_offset == -60);
    CHECK(zones->at(2).time_zone_offset == 0);
    CHECK(h.cores == 8);
    CHECK(h.memory_mb == 16384);
    CHECK(h.check == std::vector<std::string>{"h", "10.0.0.1:22"});
    CHECK(h.file_server == std::vector<std::string>{"nfs-1.example.org:2049"});
    CHECK(h.gateway == std::vector<std::string>{"[fe80::1%eth0]", "[::1]:9"});
}

TEST_CASE("the host table names classes, and hosts belong to them") {
    const auto table = shell::parse_host_table(
        "class gpu=0x4 fast=2\nclass either=gpu,fast\n"
        "h1 class=gpu\nh2 class=either,1\nh3 class=0x8\n",
        "hosts");
    REQUIRE(table);
    REQUIRE(table->size() == 6);
    CHECK(table->at(0).host_class == 4);
    CHECK(table->at(1).host_class == 7);
    CHECK(table->at(2).host_class == 8);
    const std::vector<std::pair<std::string, std::uint32_t>> names = {{"gpu", 4}, {"fast", 2}, {"either", 6}};
    for (std::size_t i = 0; i < names.size(); ++i) {
        const core::HostConfig &named = table->at(3 + i);
        CHECK(named.names_class);
        CHECK(named.name == names[i].first);
        CHECK(named.host_class == names[i].second);
    }
}

TEST_CASE("all wrong lines of a host table are lines of the failure, and its short form counts them") {
    const auto table = shell::parse_host_table("h\nh\nh\n\nh slot=2\n", "d/hosts");
    REQUIRE_FALSE(table);
    CHECK(std::count(table.status().text.begin(), table.status().text.end(), '\n') == 2);
    const Status brief = shell::in_short(table.status());
    CHECK(brief.code == Code::invalid);
    CHECK(brief.text == about("d/hosts:2: host h occurs twice; dcs config check --from d 2 more errors"));
    CHECK(shell::in_short(fail(Code::invalid, "one")).text == "one");
}

TEST_CASE("an error in the host table names file and line, and nothing is taken") {
    const std::vector<std::pair<std::string, std::string>> wrong = {
        {"ok\nok", "hosts:2: host ok occurs twice"},
        {"ok\nok\n\nok slots=x", "hosts:2: host ok occurs twice\nhosts:4: "},
        {"h\nh\nh\nh\nh\nh\nh\nh", "\nhosts:8: host h occurs twice"},
        {"\n\n.hidden", "hosts:3:"},
        {"a/b", "hosts:1:"},
        {"h class=0", "hosts:1: class"},
        {"h class=0x", "hosts:1: class"},
        {"h class=-1", "hosts:1: class"},
        {"h class=0x1ffffffff", "hosts:1: class"},
        {"h slots=-1", "hosts:1: slots"},
        {"h slots=1x", "hosts:1: slots"},
        {"h slots=70000", "hosts:1: slots"},
        {"h slots", "hosts:1 `slots` name=value"},
        {"h slots=1 slots=2", "hosts:1: `slots` occurs twice"},
        {"class gpu=4\nh class=gpuu", "hosts:2 no `class"},
        {"h class=gpu\nclass gpu=4", "hosts:1 class no"},
        {"h resources=gpu", "hosts:1 resources `gpu` NAME=AMOUNT"},
        {"h resources=gpu=[0,0]", "hosts:1 resources `gpu=[0,0]` indices once"},
        {"h resources=gpu=1,gpu=2", "hosts:1 resources `gpu=2` occurs twice"},
        {"class gpu=1\nh class=gpu,", "hosts:2 class mask"},
        {"class", "hosts:1 `class` declares"},
        {"class gpu", "hosts:1 `gpu` not"},
        {"class gpu=", "hosts:1 class mask"},
        {"class gpu=0", "hosts:1 class mask"},
        {"class 4=0x4", "hosts:1 `4=0x4` not"},
        {"class any=0x4", "hosts:1 `any=0x4` not"},
        {"class gpu=1 gpu=2", "hosts:1 declared twice"},
        {"class slots=2", "hosts:1 `slots` setting"},
        {"h time_zone_offset=", "hosts:1: time_zone_offset must be minutes"},
        {"h time_zone_offset=1561", "hosts:1: time_zone_offset must be minutes"},
        {"h time_zone_offset=+-5", "hosts:1: time_zone_offset must be minutes"},
        {"h color=red", "hosts:1: unknown setting `color`"},
        {"h interval=0", "hosts:1: interval"},
        {"h interval=nan", "hosts:1: interval"},
        {"h interval=inf", "hosts:1: interval"},
        {"h interval=1e300", "hosts:1: interval"},
        {"h interval=1000", "hosts:1: the times must grow"},
        {"h users=", "hosts:1: users"},
        {"h users=a:b", "hosts:1: users"},
        {"h accounts=", "hosts:1 least none"},
        {"h pilot=maybe", "hosts:1 pilot yes no"},
        {"h require_confinement=", "hosts:1 require_confinement not confinement"},
        {"h require_confinement=filter,moat", "hosts:1 require_confinement `moat`"},
        {"h accounts=a b", "hosts:1: `b` must have"},
        {"h binary=", "hosts:1: binary"},
        {"h cores=-1", "hosts:1: cores"},
        {"h cores=65537", "hosts:1: cores"},
        {"h memory=1x", "hosts:1: memory 16G 16384"},
        {"h memory=1025T", "hosts:1: memory 1024T"},
        {"h memory=100K", "hosts:1: memory"},
        {"h memory=9999999999", "hosts:1: memory"},
        {"h check=", "hosts:1 check address"},
        {"h check=a,b:", "hosts:1: check must be addresses"},
        {"h check=a:0", "hosts:1: check"},
        {"h check=a:65536", "hosts:1: check"},
        {"h check=a:b", "hosts:1: check"},
        {"h check=::1", "hosts:1: check"},
        {"h check=[::1", "hosts:1: check"},
        {"h check=[10.0.0.1]", "hosts:1: check"},
        {"h check=[::1]x", "hosts:1: check"},
        {"h check=[::1]:", "hosts:1: check"},
        {"h check=[::1%]", "hosts:1: check"},
        {"h check=-a", "hosts:1: check"},
        {"h check=a/b", "hosts:1: check"},
        {"h fileserver=a b=c", "hosts:1: unknown setting `b`"},
        {"h gateway=a!", "hosts:1: gateway must be addresses"},
        {"h check=1,2,3,4,5,6,7,8,9", "hosts:1 8 addresses"},
    };
    for (const auto &[text, expected] : wrong) {
        const auto hosts = shell::parse_host_table(text, "hosts");
        INFO(text);
        REQUIRE_FALSE(hosts);
        CHECK(hosts.status().code == Code::invalid);
        INFO(hosts.status().text);
        CHECK(hosts.status().text == about(expected));
    }
}

TEST_CASE("a host's line is taken out, everything else stays as it is") {
    char name[] = "/tmp/dcs_hosts_XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    const std::string dir = name, file = dir + "/hosts", link = dir + "/link";
    const auto write = [&](const std::string &text) { std::ofstream(file) << text; };
    const auto text = [&] {
        std::ifstream in(file);
        return std::string(std::istreambuf_iterator<char>(in), {});
    };
    const std::string before = "# h1 is not a host here\n\nh10 slots=2\n  h1 class=0x2 # the old one\n\th2\nh1x";
    write(before);
    REQUIRE(::chmod(file.c_str(), 0640) == 0);
    REQUIRE(::symlink("hosts", link.c_str()) == 0);
    CHECK(keeper::remove_from_host_table(file, "h3"));
    CHECK(text() == before);
    CHECK(keeper::remove_from_host_table(link, "h1"));
    CHECK(text() == "# h1 is not a host here\n\nh10 slots=2\n\th2\nh1x");
    struct stat st {};
    REQUIRE(::lstat(link.c_str(), &st) == 0);
    CHECK(S_ISLNK(st.st_mode));
    REQUIRE(::stat(file.c_str(), &st) == 0);
    CHECK((st.st_mode & 0777) == 0640);
    CHECK(keeper::remove_from_host_table(file, "h1x"));
    CHECK(text() == "# h1 is not a host here\n\nh10 slots=2\n\th2\n");
    CHECK(keeper::remove_from_host_table(dir + "/none", "h1").code == Code::not_found);
    for (const std::string &path : {link, file}) ::unlink(path.c_str());
    ::rmdir(dir.c_str());
}
