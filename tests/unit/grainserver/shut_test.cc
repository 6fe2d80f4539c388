// Why a server accepts no grains, and from when on it does again.
#include "base/known_words.h"
#include "core_bench.h"

using namespace bench;

TEST_CASE("a server without a launcher accepts no grains until it has one, and says so") {
    Bench b;
    b.connect(300);
    b.in(LauncherUp{});
    b.in(LauncherDown{});
    b.launch(id(1));
    b.in(LaunchWritten{id(1)});
    b.pass(seconds(9));
    CHECK(b.none<Gauge>());  // one that starts again
    b.pass(seconds(2));
    b.one<Gauge>();
    b.in(Gauged{});
    CHECK(b.sent<wire::CallIn>().at(0).shut == no_launcher_words);
    CHECK(b.sent<wire::LaunchResult>().at(0).code == static_cast<int>(Code::limit));
    b.in(LauncherUp{});
    b.one<Gauge>();
    b.in(Gauged{});
    CHECK(b.sent<wire::CallIn>().at(0).shut.empty());
}

TEST_CASE("a full disk is looked at again soon") {
    Bench b;
    b.connect(300);
    b.in(LauncherUp{});
    Gauged full;
    full.disk_full = true;
    b.in(full);
    CHECK(b.sent<wire::CallIn>().at(0).shut == full_disk_words);
    b.pass(seconds(31));
    b.one<Gauge>();
    b.in(Gauged{});
    CHECK(b.sent<wire::CallIn>().at(0).shut.empty());
}

TEST_CASE("a grain that finds no room to start has the disk looked at before the next call-in") {
    Bench b;
    b.connect(300);
    b.in(LauncherUp{});
    b.launch(id(1));
    b.launch(id(2));
    b.in(LaunchUnwritten{id(1), Code::io_error, "for another reason"});
    b.pass(seconds(1));
    CHECK(b.none<Gauge>());
    b.in(LaunchUnwritten{id(2), Code::no_space, "No space left on device"});
    b.pass(Duration{1});
    b.one<Gauge>();
    Gauged full;
    full.disk_full = true;
    b.in(full);
    CHECK(b.sent<wire::CallIn>().at(0).shut == full_disk_words);
}
