// A copy whose file `current` is damaged, and what operators read of a copy that the backup cannot keep.
#include "support/about.h"
#include "unit/mirror/bench.h"

namespace dcs::mirror_test {
using turn::MirrorMode;

TEST_CASE("without a readable `current` the whole copy goes on, the later one of two") {
    Bench b(MirrorMode::sync);
    REQUIRE(b.connect().empty());
    b.append("t/1", "x");
    b.deliver_all();
    REQUIRE(b.copy->tidy());
    const auto files_of = [&](const std::string &slot) { return b.copy_disk.files(slot); };
    const auto put = [&](const Files &files, const std::string &from, const std::string &to) {
        for (const auto &[path, bytes] : files) {
            const std::string below = to + path.substr(from.size());
            if (below.back() == '/') {
                (void)b.copy_disk.make_dir(below.substr(0, below.size() - 1));
                continue;
            }
            for (std::size_t end = below.find('/'); end != below.npos; end = below.find('/', end + 1))
                (void)b.copy_disk.make_dir(below.substr(0, end));
            REQUIRE(b.copy_disk.create(below, bytes));
        }
    };
    b.disconnect();
    b.copy.reset();
    const std::string slot = *b.copy_disk.read("current", 0, 1), other = slot == "a" ? "b" : "a";
    const Files earlier = files_of(slot);
    for (const char *bytes : {"", "a", "\n\n"}) {
        REQUIRE(b.copy_disk.truncate_append("current", 0, bytes));
        REQUIRE(b.connect().empty());
        CHECK(b.copy->mended() == about("`current` damaged `" + slot + "` complete"));
        b.append("t/1", bytes);
        b.deliver_all();
        CHECK(b.copied() == b.history[b.store->turn()]);
        CHECK(!said(b, "the backup has none: "));
        b.disconnect();
    }
    b.copy.reset();
    put(earlier, slot, other);  // it was not yet removed
    REQUIRE(b.copy_disk.truncate_append("current", 0, ""));
    REQUIRE(b.connect().empty());
    CHECK(*b.copy_disk.read("current", 0, 8) == slot + "\n");
    CHECK(b.copy->turn() == b.store->turn());
    CHECK(files_of(other).empty());
    b.disconnect();
    b.copy.reset();
    REQUIRE(b.copy_disk.truncate_append("current", 0, ""));
    REQUIRE(b.copy_disk.make_dir(other));
    REQUIRE(b.copy_disk.create(other + "/format", "in the making"));  // its last file, but nothing counts it yet
    REQUIRE(b.connect().empty());
    CHECK(b.copy->turn() == b.store->turn());
}

TEST_CASE("a damaged `current` beside nothing that was complete: a new copy is made") {
    Bench b(MirrorMode::sync);
    b.append("t/1", "x");
    REQUIRE(b.copy_disk.create("current", ""));
    REQUIRE(b.connect().empty());
    b.deliver_all();
    CHECK(b.copied() == b.history[b.store->turn()]);
}

TEST_CASE("operators see why the backup cannot keep the copy, until the copy is up to date") {
    Bench b(MirrorMode::sync);
    REQUIRE(b.connect().empty());
    b.deliver_all();
    const auto fails = [&] {
        b.connected = true;
        b.mirror->came(Bench::backup, wire::MirrorCall{}, 0);
        b.mirror->came(Bench::backup, wire::Refused{"its disk is full"}, 0);
    };
    b.disconnect();
    b.append("t/1", "x");
    fails();
    for (const bool linked : {true, false}) {
        INFO(linked);
        CHECK(b.status().text == about("backup cannot keep copy: its disk is full"));
        REQUIRE(b.mirror->problems().size() == 1);
        CHECK(b.mirror->problems()[0].problem == about("commits wait its disk is full"));
        CHECK(b.mirror->problems()[0].advice == about("backup's host dcs backup detach"));
        CHECK(b.mirror->problems()[0].advice.find("start the backup") == std::string::npos);
        b.disconnect();
    }
    const auto lines = b.lines.size();
    fails();
    b.disconnect();
    CHECK(b.lines.size() == lines);  // it repeats itself
    b.copy.reset();
    REQUIRE(b.connect().empty());
    b.deliver_all();
    CHECK(b.mirror->problems().empty());
    CHECK(b.status().text.empty());
    b.disconnect();
    CHECK(b.mirror->problems().at(0).problem == about("backup not connected"));

    REQUIRE(b.connect().empty());  // with a whole copy that cannot be tidied; then it can
    b.mirror->came(Bench::backup, wire::Refused{"its disk is full"}, 0);
    CHECK(b.mirror->problems().size() == 1);
    b.mirror->came(Bench::backup, wire::MirrorHas{0, true, b.copy->turn()}, 0);
    CHECK(b.mirror->problems().empty());
}

TEST_CASE("operators hear of the backup's disk before it is full, also while nothing is copied") {
    Bench b(MirrorMode::sync);
    REQUIRE(b.connect().empty());
    b.deliver_all();
    const auto has = [&](std::uint64_t mib) {
        b.mirror->came(Bench::backup, wire::MirrorHas{0, false, 0, mib << 20}, 0);
    };
    const auto logged = [&] {
        return std::count_if(b.lines.begin(), b.lines.end(),
                             [](const std::string &l) { return l == about("disk only 100 MiB free"); });
    };
    has(0);  // an older one, which does not say
    has(256);
    CHECK(b.mirror->problems().empty());
    for (int n = 0; n < 2; ++n) has(100);
    CHECK(logged() == 1);
    REQUIRE(b.mirror->problems().size() == 1);
    CHECK(b.mirror->problems()[0].problem == about("its disk has only 100 MiB free"));
    CHECK(b.mirror->problems()[0].affects == about("when full commits wait"));
    CHECK(b.status().state == "current");
    b.append("t/1", "x");
    b.deliver_all();
    CHECK(b.copied() == b.history[b.store->turn()]);
    has(300);
    CHECK(b.mirror->problems().empty());
}

}  // namespace dcs::mirror_test
