// A state directory that was restored from long ago, and the copy that has what happened since.
#include "support/about.h"
#include "unit/mirror/bench.h"

namespace dcs::mirror_test {
using turn::Attachment;
using turn::MirrorMode;

namespace {
// A scheduler whose state directory was restored from before `b`'s second turn, with the copy of that.
void restore_old(Bench &b, Bench &old) {
    REQUIRE(b.connect().empty());
    b.append("t/1", "acknowledged");
    b.append("t/1", ", too");
    b.deliver_all();
    old.copy_disk = b.copy_disk.killed();
    old.open_scheduler();
}
}  // namespace

TEST_CASE("commits do not continue without a copy that is ahead, until it was moved away") {
    Bench b(MirrorMode::sync), old(MirrorMode::sync, Attachment::attached);
    restore_old(b, old);
    REQUIRE(old.connect().empty());
    CHECK(old.mirror->status().state == "ahead");
    REQUIRE(old.mirror->problems().size() == 1);
    CHECK(old.mirror->problems()[0].problem == about("commits wait copy is ahead"));
    CHECK(old.mirror->problems()[0].advice == about("dcs backup promote move `mirror`"));
    CHECK(old.mirror->problems()[0].advice.find("detach") == std::string::npos);
    old.append("t/1", "other");
    old.clock = old.clock + seconds(1);
    old.mirror->look(old.clock);
    old.clock = old.clock + seconds(10);
    old.mirror->look(old.clock);
    CHECK(!said(old, "detach"));
    old.answers.clear();
    old.mirror->came(Bench::person, wire::AskMirror{wire::opening_form, true}, 1);
    REQUIRE(old.answers.size() == 1);
    const auto *no = std::get_if<wire::ErrorReply>(&old.answers[0]);
    REQUIRE(no);
    CHECK(no->text == about("only the copy has ahead dcs backup promote move `mirror`"));
    CHECK(old.mirror->holds());

    old.copy_disk = test::SimDisk(16);
    REQUIRE(old.connect().empty());
    old.deliver_all();
    CHECK(old.mirror->status().state == "current");
    CHECK(!old.mirror->holds());
    CHECK(old.copied() == old.history[old.store->turn()]);
}

TEST_CASE("the copy of another branch is not overwritten when the store has as many turns, nor after a start") {
    for (const MirrorMode mode : {MirrorMode::sync, MirrorMode::lagging}) {
        INFO(turn::word_of(mode));
        Bench b(MirrorMode::sync), old(mode);
        restore_old(b, old);
        for (int i = 0; i < 5; ++i) old.append("t/1", "other");  // while the backup is away
        REQUIRE(old.store->turn() > b.copy->turn());
        for (int start = 0; start < 3; ++start) {
            INFO(start);
            REQUIRE(old.connect().empty());
            old.deliver_all();
            CHECK(old.refused.find("is ahead") != std::string::npos);
            CHECK(old.copied() == b.copied());
            CHECK(old.mirror->status().state == "ahead");
            CHECK(old.mirror->status().lag_turns < old.store->turn());
            for (const wire::ProblemRow &row : old.mirror->problems()) {
                CHECK(row.problem.find("is ahead") != std::string::npos);
                CHECK(row.problem.find("behind") == std::string::npos);
                CHECK(row.problem.find("there is none") == std::string::npos);
            }
            old.append("t/1", "more");
            old.open_scheduler();
        }
        old.copy_disk = test::SimDisk(16);
        REQUIRE(old.connect().empty());
        old.deliver_all();
        CHECK(old.copied() == old.history[old.store->turn()]);
        old.open_scheduler();  // its own copy is known as that
        REQUIRE(old.connect().empty());
        old.append("t/1", "last");
        old.deliver_all();
        CHECK(old.refused.empty());
        CHECK(old.copied() == old.history[old.store->turn()]);
    }
}

TEST_CASE("a copy that was behind when the scheduler started is its own, whatever it gets from then on") {
    Bench b(MirrorMode::lagging);
    REQUIRE(b.connect().empty());
    b.deliver_all();
    b.disconnect();
    for (int i = 0; i < 3; ++i) b.append("t/1", "x");
    b.open_scheduler();
    b.open_scheduler();
    REQUIRE(b.connect().empty());
    b.deliver_all();
    b.append("t/1", "y");
    b.deliver_all();
    b.disconnect();
    REQUIRE(b.connect().empty());
    b.append("t/1", "z");
    b.deliver_all();
    CHECK(b.refused.empty());
    CHECK(b.copied() == b.history[b.store->turn()]);
}

}  // namespace dcs::mirror_test
