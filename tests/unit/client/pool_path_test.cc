// Where the pool is: what root's file says, and what goes before it. process/root_pool has the real file.
#include <cstdlib>
#include <filesystem>

#include <sys/wait.h>
#include <unistd.h>

#include "client/pool_path.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::client;

namespace {

std::string said(std::string_view text) { return parse_host_conf(text).status().text; }

// As a user begins: none of the variables, a home of their own.
struct Home {
    std::string path;
    Home() {
        char name[] = "/tmp/dcs-pool-path-XXXXXX";
        REQUIRE(::mkdtemp(name) != nullptr);
        path = name;
        for (const char *variable : {"DCS_DIR", "XDG_STATE_HOME"}) ::unsetenv(variable);
        ::setenv("HOME", path.c_str(), 1);
    }
    ~Home() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("pool.conf names a directory, a scheduler elsewhere and its keys, each once") {
    const auto conf = parse_host_conf("# the pool of this host\n\n  dir\t/var/lib/dcs  # here\r\npki /etc/dcs/pki\n");
    REQUIRE(conf);
    CHECK((conf->dir == "/var/lib/dcs" && conf->pki == "/etc/dcs/pki" && conf->scheduler.empty()));
    CHECK(parse_host_conf("scheduler a:1,b:2")->scheduler == "a:1,b:2");
    CHECK((parse_host_conf("")->dir.empty() && parse_host_conf("\n#\n")->scheduler.empty()));
    const std::string takes =
        ": expected `scheduler HOST:PORT[,HOST:PORT]`, `pki DIR` or `dir DIR`, each once, with "
        "absolute paths";
    CHECK(said("dir here\n") == "/etc/dcs/pool.conf, line 1" + takes);
    CHECK(said("dir /a\ndir /b\n") == "/etc/dcs/pool.conf, line 2" + takes);
    CHECK(said("\nuser root\n") == "/etc/dcs/pool.conf, line 2" + takes);
    CHECK(said("dir\n") == "/etc/dcs/pool.conf, line 1" + takes);
    CHECK(said("dir /a b\n") == "/etc/dcs/pool.conf, line 1" + takes);
}

TEST_CASE("DCS_DIR goes before all, and a user's own pool before that of the host") {
    const Home home;
    const std::string own = home.path + "/.local/state/dcs", other = home.path + "/state";
    std::filesystem::create_directories(own + "/scheduler");
    CHECK((find_pool()->kind == PoolPlace::Kind::own && find_pool()->directory == own));
    CHECK(*own_pool_directory() == own);
    ::setenv("XDG_STATE_HOME", other.c_str(), 1);
    CHECK(*own_pool_directory() == other + "/dcs");
    ::setenv("XDG_STATE_HOME", "not/absolute", 1);
    CHECK(*own_pool_directory() == own);
    ::setenv("DCS_DIR", "/pools/mine", 1);
    CHECK((find_pool()->kind == PoolPlace::Kind::named && find_pool()->directory == "/pools/mine"));
    ::setenv("DCS_DIR", "mine", 1);
    CHECK(find_pool().status().text == about("DCS_DIR \"mine\" absolute"));
    ::unsetenv("DCS_DIR");
}

// In a child: it is remembered for the whole process.
TEST_CASE("a program that has found its pool stays there, whatever comes about around it") {
    const Home home;
    const std::string own = home.path + "/.local/state/dcs";
    std::filesystem::create_directories(own + "/scheduler");
    const pid_t child = ::fork();
    if (child == 0) {
        bool good = *pool_directory() == own;
        std::filesystem::remove_all(own);
        good = good && *pool_directory() == own;
        ::setenv("DCS_DIR", "/pools/mine", 1);
        good = good && *pool_directory() == "/pools/mine";
        ::unsetenv("DCS_DIR");
        ::_exit(good && *pool_directory() == own ? 0 : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}
