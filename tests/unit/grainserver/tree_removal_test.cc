// What strangers made deep and wide goes, and nothing else.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "scratch_dir.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace bench;

TEST_CASE("a tree is removed however deep it is, in steps, with one descriptor, and only if it stays where it was") {
    ScratchDir dir;
    const Result<Fd> top = open_directory(AT_FDCWD, dir.path);
    const auto nest = [&](int depth) {
        REQUIRE(::mkdirat(top->get(), "t", 0700) == 0);
        Fd here(::openat(top->get(), "t", O_RDONLY | O_DIRECTORY));
        for (int i = 0; i < depth; ++i) {
            REQUIRE(::mkdirat(here.get(), "d", 0700) == 0);
            here = Fd(::openat(here.get(), "d", O_RDONLY | O_DIRECTORY));
        }
        put_file("/proc/self/fd/" + std::to_string(here.get()) + "/f", "x");
    };
    nest(3000);
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const auto highest = static_cast<rlim_t>(::dup(top->get())) + 4;
    ::close(static_cast<int>(highest - 4));
    const rlimit few{highest, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    TreeRemoval removal(top->get(), "t");
    int steps = 0;
    bool higher = false;  // what is far down is moved up, where each call costs less
    Result<bool> done = false;
    while (done && !*done && steps < 1000) {
        done = removal.go_on(100);
        ++steps;
        const Result<Fd> at = open_directory(top->get(), "t");
        const auto names = at ? list_directory(at->get()) : std::vector<std::string>();
        for (const std::string &name : *names) higher = higher || name.starts_with("moved-");
    }
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    INFO(done.status().text);
    REQUIRE(done);
    CHECK(*done);
    CHECK(steps > 50);
    CHECK(steps < 250);
    CHECK(higher);
    CHECK_FALSE(file_exists(top->get(), "t"));
    REQUIRE(make_directories(dir.path + "/t"));
    for (int i = 0; i < 10'000; ++i) put_file(dir.path + "/t/" + std::to_string(i), "");
    CHECK(remove_tree(top->get(), "t"));
    CHECK_FALSE(file_exists(top->get(), "t"));
    // Its owner moves a part of it away while it is removed: nothing there is touched.
    nest(20);
    REQUIRE(make_directories(dir.path + "/elsewhere/d"));
    put_file(dir.path + "/elsewhere/keep", "x");
    TreeRemoval disturbed(top->get(), "t");
    REQUIRE_FALSE(*disturbed.go_on(5));
    REQUIRE(::rename((dir.path + "/t/d/d").c_str(), (dir.path + "/elsewhere/d").c_str()) == 0);
    const auto moved = disturbed.go_on(1000);
    CHECK(moved.status().text == about("d moved removed"));
    CHECK(file_exists(top->get(), "elsewhere"));
    CHECK(get_file(dir.path + "/elsewhere/keep") == "x");
    CHECK(remove_tree(top->get(), "t"));
}
