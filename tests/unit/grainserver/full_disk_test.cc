// A host whose disk is full takes no work.
#include <string>

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "core_bench.h"
#include "grainserver/shell/grain_files.h"
#include "process/table.h"
#include "scratch_dir.h"
#include "support/about.h"

using namespace bench;

TEST_CASE("a grain that fails after its disk was full may have room when it ends, and is innocent") {
    Bench b;
    b.connect(9);
    b.run_grain(id(1));
    b.run_grain(id(2));
    DirFacts full = dir({{1, 1}}), room = full;
    full.disk_full = true;
    ExitFacts failed;
    failed.code = 1;
    const auto expect = [&](bool innocent) {
        const auto r = b.one<SendReport>();
        CHECK(r.innocent == innocent);
        CHECK((r.reason == about("disk full")) == innocent);
    };
    switch (GENERATE(0, 1, 2)) {
    case 0:  // seen at another's end, after which its files are removed
        b.exit(id(1), full, failed);
        expect(true);
        break;
    case 1:  // when its server calls in
        b.in(Gauged{0.5, 4096, false, 8192, true});
        break;
    default:  // while it runs
        b.in(Looked{id(2), full});
    }
    b.in(Gauged{});
    b.clear();
    SECTION("soon") {
        b.wait(seconds(59));
        b.exit(id(2), room, failed);
        expect(true);
    }
    SECTION("by a signal") {
        failed.code = 0;
        failed.signal = 6;
        b.exit(id(2), room, failed);
        expect(true);
    }
    SECTION("long after") {
        b.wait(seconds(61));
        b.exit(id(2), room, failed);
        expect(false);
    }
    SECTION("with success") {
        b.exit(id(2), room, {});
        expect(false);
    }
    SECTION("it began after that") {
        b.message(wire::Configure{9, 3, 1});
        b.wait(seconds(1));
        b.run_grain(id(3));
        b.exit(id(3), room, failed);
        expect(false);
    }
}

TEST_CASE("a host accepts no grains while the disk of its grains is full") {
    Bench b;
    b.connect(9, 1);
    b.run_grain(id(1));
    b.launch(id(2));
    b.in(LaunchWritten{id(2)});  // waits for a slot
    b.clear();
    const auto gauge = [&](bool full) { b.in(Gauged{0.5, 4096, false, 8192, full}); };
    gauge(true);
    CHECK(b.sent<wire::CallIn>().back().shut == about("disk full"));
    CHECK(b.state.grains.count(id(2)) == 0);
    CHECK(b.state.grains.at(id(1)).ending == Ending::none);  // it may yet end well
    b.launch(id(3));
    const auto said = b.sent<wire::LaunchResult>();
    REQUIRE_FALSE(said.empty());
    CHECK(said.back().text == about("accepts no grains disk full"));
    gauge(false);
    CHECK(b.sent<wire::CallIn>().back().shut.empty());
    b.launch(id(3));
    CHECK(b.state.grains.count(id(3)) == 1);
}

TEST_CASE("a disk that was full has room when it has clearly more than what makes it full") {
    ScratchDir d;
    const std::string place = d.path + "/disk";
    REQUIRE(make_directories(place));
    if (::mount("none", place.c_str(), "tmpfs", 0, "size=4m") != 0) {
        WARN("SKIPPED: file systems cannot be mounted here");
        return;
    }
    {
        server::GrainFiles files;
        REQUIRE(files.open(place, "local1", boot_id()));
        CHECK_FALSE(files.disk_full());
        const Fd filler(::open((place + "/filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        REQUIRE(filler);
        const std::string block(4096, 'x');
        off_t all = 0;
        for (ssize_t n = 0; (n = ::write(filler.get(), block.data(), block.size())) > 0;) all += n;
        const auto leave = [&](off_t bytes) { return ::ftruncate(filler.get(), all - bytes) == 0; };
        CHECK(files.disk_full());
        REQUIRE(leave(128 << 10));  // an ending grain has freed it
        CHECK(files.disk_full());
        REQUIRE(leave(512 << 10));
        CHECK_FALSE(files.disk_full());
        REQUIRE(leave(128 << 10));
        CHECK_FALSE(files.disk_full());
    }
    ::umount2(place.c_str(), MNT_DETACH);
}
