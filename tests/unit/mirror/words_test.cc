// What the backup says of a copy that is damaged or does not fit, and the scheduler of a backup that it does not take,
// word for word.
#include "support/about.h"
#include "unit/mirror/bench.h"

namespace dcs::mirror_test {
namespace {

using turn::MirrorMode;
using wire::MirrorStep;

wire::MirrorPage page(MirrorStep step, const std::string &path = "") {
    wire::MirrorPage p;
    p.step = step;
    p.name = 0xfeed, p.epoch = 3, p.turn = 99;
    p.path = path;
    p.bytes = "bytes";
    p.size = 5;
    return p;
}

struct Copied : Bench {
    Copied() : Bench(MirrorMode::sync) {
        REQUIRE(connect().empty());
        append("t/1", "x");
        deliver_all();
        REQUIRE(copy->whole());
    }
    std::string refused_page(const wire::MirrorPage &p) { return copy->take(p).text; }
    std::string refused_call(wire::MirrorCall call) {
        connected = true;
        refused.clear();
        mirror->came(backup, call, 0);
        return refused;
    }
};

std::string nonsense(const std::string &what) { return "the scheduler's copy: " + what; }

}  // namespace

TEST_CASE("each page that makes no sense is called what it is") {
    Copied b;
    const auto with = [](MirrorStep step, auto change) {
        wire::MirrorPage p = page(step);
        change(p);
        return p;
    };
    CHECK(b.refused_page(page(static_cast<MirrorStep>(99))) == nonsense("an unknown step"));
    CHECK(b.refused_page(with(MirrorStep::begin, [](auto &p) { p.name = 0; })) == nonsense("a store without a name"));
    CHECK(b.refused_page(with(MirrorStep::begin, [](auto &p) { p.name = 1; })) == about(nonsense("store copy here")));
    CHECK(b.refused_page(page(MirrorStep::file, "t/1/log")) == about(nonsense("file without beginning copy")));
    CHECK(b.refused_page(page(MirrorStep::removed, "t")) == about(nonsense("removal without beginning copy")));
    CHECK(b.refused_page(page(MirrorStep::whole)) == about(nonsense("end copy without beginning")));
    CHECK(b.refused_page(with(MirrorStep::turn, [](auto &p) { p.offset = 7; })) ==
          nonsense("inconsistent pieces of a turn"));
    CHECK(b.refused_page(page(MirrorStep::content)) == nonsense("an inconsistent content"));
    CHECK(b.refused_page(page(MirrorStep::forget)) == nonsense("a content without a name"));
    REQUIRE(b.copy->take(page(MirrorStep::begin)));
    CHECK(b.refused_page(page(MirrorStep::file, "../x")) == nonsense("an invalid file name ../x"));
    CHECK(b.refused_page(page(MirrorStep::removed, "..")) == nonsense("an invalid directory .."));
    CHECK(b.refused_page(page(MirrorStep::whole)).find("the received copy is incomplete: ") == 0);
}

TEST_CASE("a turn or an end for a copy that is not there, or is another store's, is called that") {
    test::SimDisk empty(16);
    auto opened = backup::Copy::open(empty, small_store());
    REQUIRE(opened);
    CHECK((*opened)->take(page(MirrorStep::turn)).text == about(nonsense("turn without complete copy")));
    // All files of one store come under the name of another one.
    Copied b;
    wire::MirrorPage begin = page(MirrorStep::begin), whole = page(MirrorStep::whole);
    begin.name = 0xbeef;
    REQUIRE((*opened)->take(begin));
    for (const auto &[path, bytes] : trees_of(b.disk, "")) {
        wire::MirrorPage file = page(MirrorStep::file, path);
        file.bytes = bytes;
        REQUIRE((*opened)->take(file));
    }
    whole.turn = b.store->turn();
    CHECK((*opened)->take(whole).text == about(nonsense("received store not announced")));
}

TEST_CASE("a copy's files that are damaged say what a person can do") {
    Copied b;
    b.disconnect();
    b.copy.reset();
    test::SimDisk other = b.copy_disk.killed();
    REQUIRE(other.truncate_append("current", 0, "c\n"));
    REQUIRE(other.make_dir("b"));
    REQUIRE(other.make_dir("b/turns"));
    REQUIRE(other.create("b/turns/applied", "?"));  // it was once complete, and could be the later one
    const auto damaged = backup::Copy::open(other, small_store());
    CHECK(damaged.status().text == about("`current` `b` whichever directories complete"));
    REQUIRE(other.truncate_append("current", 0, "a\n"));
    std::string deep = "incoming";
    for (int i = 0; i < 70; ++i) {
        REQUIRE(other.make_dir(deep));
        deep += "/d";
    }
    const auto too_deep = backup::Copy::open(other, small_store());
    CHECK(too_deep.status().text.find("/d is nested too deeply") != std::string::npos);
}

TEST_CASE("a copy that is missing or damaged is not promoted") {
    test::SimDisk empty(16);
    auto opened = backup::Copy::open(empty, small_store());
    REQUIRE(opened);
    CHECK((*opened)->promote(4).status().text == about("no complete copy"));
    Copied b;
    b.copy_disk.flip("a/t/1/log", 0, 1);
    b.copy_disk.cut(*b.copy_disk.read("current", 0, 1) + "/t/1/log", 0);
    REQUIRE(b.copy->tidy());
    b.append("t/1", "y");
    b.deliver_all();  // the turn does not fit what is there
    REQUIRE(b.copy);
    CHECK(b.copy->promote(4).status().text.find("the copy is damaged: ") == 0);
}

TEST_CASE("a backup whose copy cannot be taken is told why, and a scheduler that is past says it") {
    Copied b;
    wire::MirrorCall call;
    call.name = 0xbeef;
    CHECK(b.refused_call(call) == about("`dcs promote` `mirror`"));
    call.name = 0xfeed, call.epoch = 3, call.turn = 1000;
    CHECK(b.refused_call(call) == about("copy ahead turn 1000 here up to " + std::to_string(b.store->turn()) +
                                        "): state directory out date dcs backup promote makes copy scheduler's "
                                        "to give up move `mirror` out start again"));
    call.epoch = 4;
    CHECK(b.refused_call(call) == "this scheduler's epoch has ended");
    CHECK(b.fenced_by == 4);
}

}  // namespace dcs::mirror_test
