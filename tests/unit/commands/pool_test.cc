#include "commands/dcs/frame/pool_directory.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/dcs/verbs.h"
#include "commands/dcs/pool/stop_daemons.h"
#include "commands/dcs/pool/start_daemon.h"
#include "locks/dcs_atoms.h"
#include "process/table.h"
#include "support/scratch.h"

using namespace dcs;
using namespace dcs::commands;

namespace {

using test::Folder;

// A child that holds a lock until it is ended; ignores SIGTERM if told so.
struct Holder {
    Holder(const std::string &lock, bool stubborn) {
        int ready[2];
        REQUIRE(::pipe(ready) == 0);
        pid = ::fork();
        if (pid == 0) {
            ::signal(SIGTERM, stubborn ? SIG_IGN : SIG_DFL);  // not the test framework's handler
            const auto held = locks::take_dcs_atom(locks::DcsAtom::grain_server, lock);
            if (!held || ::write(ready[1], "x", 1) != 1) ::_exit(1);
            while (true) ::pause();
        }
        ::close(ready[1]);
        char c = 0;
        REQUIRE(::read(ready[0], &c, 1) == 1);
        ::close(ready[0]);
    }
    ~Holder() {
        if (pid > 0) {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
    }
    int signal_that_ended() {
        int status = 0;
        ::waitpid(pid, &status, 0);
        pid = 0;
        return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }
    pid_t pid = 0;
};

}  // namespace

TEST_CASE("the file `pool`") {
    const PoolNumbers numbers{3, 2, 0.5};
    CHECK(pool_text(numbers) == "servers 3\nslots 2\ninterval 0.5\n");
    CHECK(*numbers_of_pool_text(pool_text(numbers)) == numbers);
    CHECK(*numbers_of_pool_text("# note\nservers 1\n") == PoolNumbers{1, 1, 10});
    for (const char *bad : {"", "slots 1\n", "servers 0\n", "servers x\n", "servers 1\nslots\n", "servers 1\nwhat 2\n",
                            "servers 1\ninterval 0\n", "servers 1001\n"})
        CHECK_FALSE(numbers_of_pool_text(bad));
    PoolNumbers pilots{0, 1, 2};
    pilots.pilots = 20;
    pilots.pilot_slots = 8;
    pilots.listen = "0.0.0.0:7001";
    CHECK(*numbers_of_pool_text(pool_text(pilots)) == pilots);
    CHECK(numbers_of_pool_text("servers 1\nslots -\n").status().text.find("line 2") != std::string::npos);
}

TEST_CASE("the host table scales supervision with the interval") {
    const std::string text = host_table_text({2, 4, 0.5}, "x86_64-linux-gnu");
    CHECK(text.find("\nlocal1 class=0x1 binary=x86_64-linux-gnu slots=4 interval=0.5 alert=1.5 "
                    "limit=3 extended=6\n") != std::string::npos);
    CHECK(text.find("\nlocal2 ") != std::string::npos);
    CHECK(text.find("local3") == std::string::npos);
    CHECK(text[0] == '#');
    PoolNumbers pilots{0, 1, 2};
    pilots.pilots = 2;
    pilots.pilot_slots = 8;
    const std::string table = host_table_text(pilots, "b");
    CHECK(table.find("\nclass pilots=0x2\npilot1 class=pilots pilot=yes binary=b slots=8 interval=2 ") !=
          std::string::npos);
    CHECK(table.find("\npilot2 ") != std::string::npos);
    CHECK(table.find("local") == std::string::npos);
    // No scientific notation, however long.
    CHECK(host_table_text({1, 1, 86400}, "b").find("extended=1036800\n") != std::string::npos);
}

TEST_CASE("files are replaced whole, for the owner only") {
    Folder f;
    REQUIRE(write_file(f.at("x"), "one"));
    REQUIRE(write_file(f.at("x"), "three"));
    CHECK(*read_file(f.at("x"), 100) == "three");
    CHECK(read_file(f.at("x"), 4).status().code == Code::limit);
    CHECK(read_file(f.at("y"), 4).status().code == Code::not_found);
    struct stat st = {};
    REQUIRE(::stat(f.at("x").c_str(), &st) == 0);
    CHECK((st.st_mode & 0777) == 0600);
    CHECK_FALSE(write_file(f.at("no/such"), "x"));
}

TEST_CASE("daemons are seen by their locks, servers in the order of their numbers") {
    Folder f;
    Pool pool(f.path);
    CHECK(pool.daemons().size() == 1);  // the scheduler, down
    for (const char *name : {"scheduler", "servers", "servers/local2", "servers/local10", "servers/local1"})
        REQUIRE(::mkdir(f.at(name).c_str(), 0700) == 0);
    CHECK(pool.server_names() == std::vector<std::string>{"local1", "local2", "local10"});
    REQUIRE(write_file(f.at("pool"), pool_text({2, 1, 1})));
    Holder holder(f.at("servers/local10/lock"), false);
    const auto daemons = pool.daemons();
    REQUIRE(daemons.size() == 4);  // scheduler, local1, local2, and local10 because it lives
    CHECK(daemons[0].role == "scheduler");
    CHECK_FALSE(daemons[0].up);
    CHECK(daemons[1].name == "local1");
    CHECK_FALSE(daemons[1].up);
    CHECK(daemons[3].name == "local10");
    CHECK(daemons[3].up);
    CHECK(daemons[3].pid == holder.pid);
}

TEST_CASE("a daemon is stopped politely, a stubborn one for certain, and no other party") {
    Folder f;
    for (const char *name : {"servers", "servers/local1", "servers/local2"})
        REQUIRE(::mkdir(f.at(name).c_str(), 0700) == 0);
    Pool pool(f.path);
    Holder polite(f.at("servers/local1/lock"), false), stubborn(f.at("servers/local2/lock"), true);
    CHECK(stays_up(pool.server("local1")));
    CHECK(stop_daemons({pool.server("local1"), pool.server("local2")}, 1).empty());
    CHECK(polite.signal_that_ended() == SIGTERM);
    CHECK(stubborn.signal_that_ended() == SIGKILL);
    CHECK_FALSE(stays_up(pool.server("local1")));
    CHECK(stop_daemons({pool.server("local1")}, 1).empty());
}

TEST_CASE("a note that names an innocent process does not get it killed") {
    Folder f;
    for (const char *name : {"servers", "servers/local1"}) REQUIRE(::mkdir(f.at(name).c_str(), 0700) == 0);
    const std::string lock = f.at("servers/local1/lock");
    Holder holder(lock, false), innocent(f.at("other"), false);
    {  // the lock's note lies
        std::ofstream note(lock);
        note << innocent.pid << " grainserver local1\n";
    }
    CHECK(stop_daemons({Pool(f.path).server("local1")}, 2).empty());
    CHECK(holder.signal_that_ended() == SIGTERM);
    CHECK(::waitpid(innocent.pid, nullptr, WNOHANG) == 0);
}

TEST_CASE("a process that was just killed does not count as up") {
    Folder f;
    for (const char *name : {"servers", "servers/local1"}) REQUIRE(::mkdir(f.at(name).c_str(), 0700) == 0);
    for (int i = 0; i < 20; ++i) {
        Holder holder(f.at("servers/local1/lock"), false);
        ::kill(holder.pid, SIGKILL);
        CHECK_FALSE(stays_up(Pool(f.path).server("local1")));
    }
}

TEST_CASE("grains without a launcher are found and ended, with their children") {
    Folder f;
    for (const char *name : {"servers", "servers/local1", "servers/local1/grains", "servers/local1/grains/a,1,1"})
        REQUIRE(::mkdir(f.at(name).c_str(), 0700) == 0);
    const pid_t grain = ::fork();
    if (grain == 0) {
        ::setsid();
        if (::fork() == 0) ::execl("/bin/sleep", "sleep", "100", nullptr);
        ::execl("/bin/sleep", "sleep", "100", nullptr);
        ::_exit(1);
    }
    const pid_t marked = ::fork();  // left the grain's session, but has its environment
    if (marked == 0) {
        ::setsid();
        ::setenv("DCS_GRAIN_DIR", f.at("servers/local1/grains/b,1,1").c_str(), 1);
        ::execl("/bin/sleep", "sleep", "100", nullptr);
        ::_exit(1);
    }
    const pid_t stranger = ::fork();  // of another pool whose name begins alike
    if (stranger == 0) {
        ::setsid();
        ::setenv("DCS_GRAIN_DIR", (f.path + "2/servers/local1/grains/b,1,1").c_str(), 1);
        ::execl("/bin/sleep", "sleep", "100", nullptr);
        ::_exit(1);
    }
    auto name_of = [](pid_t pid) {
        const auto text = read_file("/proc/" + std::to_string(pid) + "/comm", 100);
        return text ? *text : std::string();
    };
    for (int i = 0;
         i < 12'000 && !(name_of(grain) == "sleep\n" && name_of(marked) == "sleep\n" && name_of(stranger) == "sleep\n");
         ++i)
        ::usleep(5000);
    const Pool pool(f.path);
    const std::string pid_file = f.at("servers/local1/grains/a,1,1/pid");
    const auto start = facts_of(grain).start;
    // Another start time or another boot: another process.
    REQUIRE(write_file(pid_file, std::to_string(grain) + " " + std::to_string(start + 1) + " " + boot_id() + "\n"));
    CHECK(live_grain_processes(pool.path("servers"), {"local1"}).size() == 1);
    REQUIRE(write_file(pid_file, std::to_string(grain) + " " + std::to_string(start) + " other-boot\n"));
    CHECK(live_grain_processes(pool.path("servers"), {"local1"}).size() == 1);
    REQUIRE(write_file(pid_file, std::to_string(grain) + " " + std::to_string(start) + " " + boot_id() + "\n"));
    CHECK(live_grain_processes(pool.path("servers"), {"local1"}).size() == 3);
    CHECK(running_grains(pool.path("servers"), {"local1", "local2"}) == 1);
    CHECK(live_grain_processes(pool.path("servers"), {"local2"}).empty());
    CHECK(end_grains(pool, {"local1"}) == 3);
    int status = 0;
    CHECK(::waitpid(grain, &status, 0) == grain);
    CHECK(WTERMSIG(status) == SIGKILL);
    CHECK(::waitpid(marked, &status, 0) == marked);
    CHECK(::waitpid(stranger, &status, WNOHANG) == 0);
    ::kill(stranger, SIGKILL);
    ::waitpid(stranger, &status, 0);
}

TEST_CASE("the last lines of a log") {
    CHECK(last_lines("a\nb\nc\n", 2) == "b\nc\n");
    CHECK(last_lines("a\nb\nc", 1) == "c");
    CHECK(last_lines("a\n", 5) == "a\n");
    CHECK(last_lines("", 5) == "");
}

TEST_CASE("every verb has help with examples first, and no verb appears twice") {
    std::vector<std::string> names;
    for (const Verb *verb : all_verbs()) {
        const std::string name = std::string(verb->noun) + " " + verb->name, help = help_of(*verb);
        CAPTURE(name);
        for (const std::string &other : names) CHECK(other != name);
        names.push_back(name);
        CHECK(help.find("Examples:") < help.find("Usage:"));
        CHECK(help.find("Usage: dcs " + (verb->noun[0] ? std::string(verb->noun) + " " : "") + verb->name) !=
              std::string::npos);
        for (const OptionRow &row : verb->options) CHECK(help.find(shown(row)) != std::string::npos);
        CHECK(verb->summary[0] != '\0');
        CHECK(verb->run != nullptr);
    }
    CHECK(names.size() > 50);
}

TEST_CASE("a document is not written through the link of another user where all may write") {
    if (::geteuid() != 0) return;  // who alone can lay one for another
    const Folder folder;
    const std::string place = folder.path + "/all", link = place + "/link", target = folder.path + "/target";
    REQUIRE((::mkdir(place.c_str(), 0700) == 0 && ::chmod(place.c_str(), 01777) == 0));
    REQUIRE(::symlink(target.c_str(), link.c_str()) == 0);
    CHECK(write_document(link, "own"));
    REQUIRE(::lchown(link.c_str(), 12345, 12345) == 0);
    CHECK(write_document(link, "another's").code == Code::io_error);
    CHECK(folder.read("target") == "own");
    REQUIRE(::chmod(place.c_str(), 0755) == 0);
    CHECK(write_document(link, "of a directory that is its owner's"));
    CHECK(write_document(place + "/fresh", "text"));
}
