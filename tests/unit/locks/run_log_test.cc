#include "locks/files/run_log.h"

#include <algorithm>
#include <fcntl.h>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <vector>

#include "scratch.h"
#include "support/catch.h"

using namespace dcs::locks;
using scratch::Directory;

namespace {

LogLine full_line() {
    LogLine line;
    line.wall = 1'795'299'003'123'456'789;
    line.name = "dax,edit,%2Fetc%2Fmotd";
    line.event = "expired";
    line.pid = 12;
    line.uid = 1000;
    line.generation = 7;
    line.runtime = 12'500'000'000;
    line.cpu = 100'000'000;
    line.io = 4096;
    line.waited = 0;
    line.limit = 5'400'000'000'000;
    line.text = "ended by process 13";
    return line;
}

std::vector<LogLine> logged(const std::string &directory) {
    std::vector<LogLine> lines;
    read_log(directory, [&](const LogLine &line) { lines.push_back(line); });
    return lines;
}

bool same(const LogLine &a, const LogLine &b) { return printed(a) == printed(b); }

}  // namespace

TEST_CASE("a line of the run log reads as it says, and is read back") {
    const LogLine line = full_line();
    CHECK(printed(line) ==
          "2026-11-21T22:10:03.123456789Z dax,edit,%2Fetc%2Fmotd expired pid=12 uid=1000 gen=7 "
          "run=12.5 cpu=0.1 io=4096 wait=0 limit=5400 : ended by process 13");
    LogLine back;
    REQUIRE(parse_log_line(printed(line), back));
    CHECK(same(line, back));
    CHECK(back.text == line.text);
    CHECK(back.runtime == line.runtime);
}

TEST_CASE("every value comes back") {
    for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, std::int64_t{999'999'999},
                                     std::int64_t{1'000'000'000}, std::int64_t{59'000'000'001}, no_limit - 1, no_limit})
        for (const std::string &text : {std::string(), std::string("run=5 : x"), std::string("tab\tline\nback\\slash"),
                                        std::string("\xc3\xa4 \x7f\x01", 5), std::string(1, '\0')}) {
            LogLine line = full_line(), back;
            line.runtime = line.cpu = line.waited = line.limit = value;
            line.io = value;
            line.text = text;
            INFO(printed(line));
            REQUIRE(parse_log_line(printed(line), back));
            CHECK(back.runtime == value);
            CHECK(back.cpu == value);
            CHECK(back.io == value);
            CHECK(back.waited == value);
            CHECK(back.limit == value);
            CHECK(back.text == text);
            CHECK(printed(line).find('\n') == std::string::npos);
        }
    for (const std::int64_t wall : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{951'782'400} * 1'000'000'000,
                                    std::int64_t{4'107'542'399} * 1'000'000'000 + 999'999'999}) {
        LogLine line = full_line(), back;
        line.wall = wall;
        REQUIRE(parse_log_line(printed(line), back));
        CHECK(back.wall == wall);
    }
    LogLine leap = full_line();
    leap.wall = std::int64_t{951'782'400} * 1'000'000'000;
    CHECK(printed(leap).substr(0, 20) == "2000-02-29T00:00:00.");
}

TEST_CASE("what is no line is not taken for one") {
    const std::string good = printed(full_line());
    LogLine line;
    for (std::size_t cut = 0; cut < good.find(" run="); ++cut) {
        INFO(good.substr(0, cut));
        if (cut > good.find("gen=") && good[cut - 1] >= '0' && good[cut - 1] <= '9') continue;  // a shorter number
        CHECK_FALSE(parse_log_line(good.substr(0, cut), line));
    }
    for (const char *text : {"", " ", "x", "2026-11-21T22:10:03.123456789Z a b pid=x uid=0 gen=0",
                             "2026-13-21T22:10:03.123456789Z a b pid=1 uid=0 gen=0",
                             "2026-11-21T22:10:03.123456789Z a b pid=1 uid=0 gen=0 run=-1",
                             "2026-11-21T22:10:03.123456789Z a b pid=1 uid=0 gen=0 run=1.0000000001",
                             "2026-11-21T22:10:03.123456789Z a b pid=1 uid=0 gen=0 run=99999999999999",
                             "2026-11-21T22:10:03.123456789Z a b pid=1 uid=0 gen=0 word",
                             "2026-11-21T22:10:03.123456789Z a b pid=1 uid=0 gen=0 : \\x4"}) {
        INFO(text);
        CHECK_FALSE(parse_log_line(text, line));
    }
}

TEST_CASE("P33 a line is never longer than one write") {
    LogLine line = full_line(), back;
    line.text.assign(100'000, '\n');
    const std::string text = printed(line);
    CHECK(text.size() < 4096);
    REQUIRE(parse_log_line(text, back));
    CHECK(back.text.size() > 500);
    CHECK(back.text.find_first_not_of('\n') == std::string::npos);
}

TEST_CASE("P33 many writers: every line is whole, and rotation loses none") {
    Directory dir;
    constexpr int writers = 8, lines = 10'000;
    std::vector<pid_t> pids;
    for (int w = 0; w < writers; ++w) {
        pids.push_back(::fork());
        if (pids.back() != 0) continue;
        LogLine line = full_line();
        line.pid = w + 1;
        for (int i = 0; i < lines; ++i) {
            line.generation = static_cast<std::uint64_t>(i);
            append_log(dir.path(), line);
        }
        ::_exit(0);
    }
    for (const pid_t pid : pids) {
        int status = -1;
        ::waitpid(pid, &status, 0);
        CHECK(scratch::exit_code(status) == 0);
    }
    CHECK(::access((dir / "run.log.1").c_str(), F_OK) == 0);
    std::vector<std::vector<bool>> seen(writers, std::vector<bool>(lines));
    for (const LogLine &line : logged(dir.path())) {
        REQUIRE(line.pid >= 1);
        REQUIRE(line.pid <= writers);
        REQUIRE(line.generation < lines);
        seen[static_cast<std::size_t>(line.pid - 1)][line.generation] = true;
    }
    for (const auto &one : seen) CHECK(std::count(one.begin(), one.end(), true) == lines);
}

TEST_CASE("P33 a log that was removed or renamed is begun again") {
    Directory dir;
    append_log(dir.path(), full_line());
    REQUIRE(::unlink((dir / "run.log").c_str()) == 0);
    append_log(dir.path(), full_line());
    CHECK(logged(dir.path()).size() == 1);
}

TEST_CASE("P33 the log's number of a descriptor that was closed over our head is not written to") {
    Directory dir, other;
    append_log(dir.path(), full_line());
    const std::string victim = dir / "victim";
    // A program that closes all its descriptors, and then opens a file of its own.
    for (int fd = 3; fd < 64; ++fd) {
        char path[64], target[512] = {};
        std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (::readlink(path, target, sizeof target - 1) > 0 && (dir / "run.log") == target) {
            ::close(fd);
            const int mine = ::open(victim.c_str(), O_RDWR | O_CREAT, 0600);
            REQUIRE(mine == fd);
            append_log(dir.path(), full_line());
            struct stat st = {};
            REQUIRE(::fstat(mine, &st) == 0);
            CHECK(st.st_size == 0);
            append_log(other.path(), full_line());  // nor is it closed
            CHECK(::fcntl(mine, F_GETFD) >= 0);
            ::close(mine);
            break;
        }
    }
    CHECK(logged(dir.path()).size() == 2);
    CHECK(::access(victim.c_str(), F_OK) == 0);
}

TEST_CASE("P33 a log that cannot be written does no harm") {
    append_log("/proc/no/such/directory", full_line());
    CHECK(logged("/proc/no/such/directory").empty());
    Directory dir;
    const std::string elsewhere = dir / "elsewhere";
    std::ofstream(elsewhere) << "precious\n";
    REQUIRE(::symlink(elsewhere.c_str(), (dir / "run.log").c_str()) == 0);
    append_log(dir.path(), full_line());
    std::string text;
    std::getline(std::ifstream(elsewhere), text, '\0');
    CHECK(text == "precious\n");
}

TEST_CASE("P33 what a full disk cut off spoils no line after it") {
    Directory dir;
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        append_log(dir.path(), full_line());
        const rlimit limit = {200, 200};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        append_log(dir.path(), full_line());
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    struct stat st = {};
    REQUIRE(::stat((dir / "run.log").c_str(), &st) == 0);
    REQUIRE(st.st_size == 200);
    append_log(dir.path(), full_line());
    append_log(dir.path(), full_line());
    CHECK(logged(dir.path()).size() >= 2);  // the line behind the cut one may be lost with it
}

TEST_CASE("the log of a directory that is shared is writable for those who share it") {
    Directory dir;
    const std::string shared = dir / "shared", sticky = dir / "sticky";
    REQUIRE(::mkdir(shared.c_str(), 0700) == 0);
    REQUIRE(::chmod(shared.c_str(), 0770) == 0);
    REQUIRE(::mkdir(sticky.c_str(), 0700) == 0);
    REQUIRE(::chmod(sticky.c_str(), 01777) == 0);
    for (const auto &[path, mode] : {std::pair{shared, 0660u}, {sticky, 0600u}, {dir.path(), 0600u}}) {
        append_log(path, full_line());
        struct stat st = {};
        REQUIRE(::stat((path + "/run.log").c_str(), &st) == 0);
        CHECK((st.st_mode & 07777) == mode);
    }
}
