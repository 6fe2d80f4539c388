// The running copy of the store: when commits wait for it, when it is made again, what is refused.
#include "support/about.h"
#include "unit/mirror/bench.h"

namespace dcs::mirror_test {
namespace {

using turn::Attachment;
using turn::MirrorMode;

}  // namespace

TEST_CASE("a copy is made while turns go on, and is then the store") {
    Bench b(MirrorMode::lagging);
    for (std::size_t i = 0; i < 30; ++i) b.append("t/" + std::to_string(i % 5), std::string(100 + 90 * i, 'a'));
    b.window_bytes = 2000;
    b.open_scheduler();
    REQUIRE(b.connect().empty());
    std::uint64_t delivered = 0;
    while (b.deliver()) {
        ++delivered;
        if (delivered % 2 != 0 || delivered > 60 || b.mirror->holds()) continue;
        b.append("t/" + std::to_string(delivered % 9), "more");
        if (delivered % 8 != 0) continue;
        const std::string gone = "t/" + std::to_string(delivered % 5);
        b.commit({{gone, "tree", {}, true}});
        b.lengths.erase(gone);
    }
    CHECK(delivered > 20);
    CHECK(b.copied() == b.history[b.store->turn()]);
    CHECK(b.copy->turn() == b.store->turn());
    CHECK(b.status().state == "current");
    CHECK(!b.mirror->holds());
}

TEST_CASE("a backup that does not take the last of a new copy delays commits briefly only") {
    Bench b(MirrorMode::lagging);
    b.append("t/1", "x");
    b.window_bytes = 600;
    b.open_scheduler();
    REQUIRE(b.connect().empty());
    for (int i = 0; i < 50 && !b.mirror->holds() && b.deliver(); ++i) b.append("t/1", "y");
    REQUIRE(b.mirror->holds());  // until the changes are over there
    b.clock = b.clock + seconds(5);
    CHECK(!b.mirror->holds());
    b.append("t/1", "z");
    b.deliver_all();
    CHECK(b.copied() == b.history[b.store->turn()]);
}

TEST_CASE("in mode sync a commit waits for the copy, from the first time that it is there") {
    Bench b(MirrorMode::sync);
    b.append("t/1", "x");
    CHECK(!b.mirror->holds());  // nothing was promised yet
    REQUIRE(b.connect().empty());
    b.deliver_all();
    CHECK(b.attachment == Attachment::attached);
    CHECK(!b.mirror->holds());
    b.append("t/1", "y");
    CHECK(b.mirror->holds());
    REQUIRE(b.deliver());
    CHECK(!b.mirror->holds());
    CHECK(b.copied() == b.history[b.store->turn()]);

    CHECK(b.mirror->problems().empty());
    b.disconnect();
    REQUIRE(b.mirror->problems().size() == 1);  // before a commit waits: from then on nothing is answered
    CHECK(b.mirror->problems()[0].problem.find("commits wait for it") != std::string::npos);
    CHECK(b.mirror->problems()[0].advice.find("dcs backup detach") != std::string::npos);
    b.append("t/1", "z");
    CHECK(b.mirror->holds());
    b.clock = b.clock + seconds(60);
    b.mirror->look(b.clock);
    b.clock = b.clock + seconds(6);
    b.mirror->look(b.clock);
    CHECK(said(b, "commits wait for the backup's copy"));
    CHECK(b.status().waiting_s >= 6);
    REQUIRE(b.connect().empty());
    b.deliver_all();
    CHECK(!b.mirror->holds());
    CHECK(!said(b, "missed too much"));  // one turn was behind, and that was kept
}

TEST_CASE("a scheduler that starts again waits for a copy that was attached") {
    Bench b(MirrorMode::sync);
    REQUIRE(b.connect().empty());
    b.deliver_all();
    b.append("t/1", "not delivered");
    b.disconnect();
    b.open_scheduler();
    CHECK(b.mirror->holds());
    REQUIRE(b.connect().empty());
    CHECK(b.mirror->holds());
    b.deliver_all();  // a new copy: the turns of the process before are not in memory
    CHECK(!b.mirror->holds());
    CHECK(b.copied() == b.history[b.store->turn()]);
}

TEST_CASE("detaching lets commits go on until the copy is there again") {
    Bench b(MirrorMode::sync);
    REQUIRE(b.connect().empty());
    b.deliver_all();
    b.disconnect();
    b.append("t/1", "x");
    CHECK(b.mirror->holds());
    b.answers.clear();
    b.mirror->came(Bench::person, wire::AskMirror{wire::opening_form, true}, 1);
    CHECK(b.attachment == Attachment::detached);
    CHECK(!b.mirror->holds());
    CHECK(b.status().detached);
    REQUIRE(b.mirror->problems().size() == 1);
    b.append("t/1", "y");
    CHECK(!b.mirror->holds());
    b.mirror->came(Bench::person, wire::AskMirror{wire::opening_form, true}, 1);
    CHECK(std::holds_alternative<wire::ErrorReply>(b.answers.back()));
    REQUIRE(b.connect().empty());
    b.deliver_all();
    CHECK(b.attachment == Attachment::attached);
    CHECK(b.mirror->problems().empty());
    CHECK(b.copied() == b.history[b.store->turn()]);
}

TEST_CASE("a backup that is connected and current can be detached before it is stopped") {
    Bench b(MirrorMode::sync);
    REQUIRE(b.connect().empty());
    b.deliver_all();
    REQUIRE(b.attachment == Attachment::attached);
    b.mirror->came(Bench::person, wire::AskMirror{wire::opening_form, true}, 1);
    CHECK(b.attachment == Attachment::detached);
    b.append("t/1", "x");
    b.deliver_all();  // it still follows, and is not attached by that
    CHECK(b.attachment == Attachment::detached);
    REQUIRE(b.mirror->problems().size() == 1);
    CHECK(b.mirror->problems()[0].problem == about("detached commits not wait"));
    CHECK(b.mirror->problems()[0].advice == about("restart dcs_backupd back commits wait again"));
    b.disconnect();
    b.append("t/1", "y");
    CHECK(!b.mirror->holds());
    REQUIRE(b.connect().empty());
    b.deliver_all();
    CHECK(b.attachment == Attachment::attached);
    CHECK(b.mirror->problems().empty());
    CHECK(b.copied() == b.history[b.store->turn()]);
}

TEST_CASE("a host that is not the backup is turned out, and the doctor says what to do") {
    Bench b(MirrorMode::sync);
    REQUIRE(b.connect().empty());
    b.deliver_all();
    CHECK_FALSE(b.mirror->turned_out(Bench::person, "a stranger"));
    CHECK(b.mirror->problems().empty());  // the right one is not disturbed
    CHECK(b.mirror->turned_out(Bench::backup, "it was revoked"));
    CHECK_FALSE(b.mirror->turned_out(Bench::backup, "it was revoked"));  // it knocks again
    b.append("t/1", "x");
    CHECK(b.mirror->holds());
    const auto waiting = b.mirror->problems();
    REQUIRE(waiting.size() == 1);
    CHECK(waiting[0].problem == about("commits wait revoked"));
    CHECK(waiting[0].advice.find("let a backup join") == 0);
    REQUIRE(b.mirror->detach("a test"));
    CHECK(b.attachment == Attachment::detached);
    CHECK_FALSE(b.mirror->holds());
    CHECK_FALSE(b.mirror->detach("a test"));
    CHECK(b.mirror->problems().at(0).problem == about("detached commits not wait revoked"));
    b.copy.reset();
    REQUIRE(b.connect().empty());
    b.deliver_all();
    CHECK(b.mirror->waits());
    CHECK(b.mirror->problems().empty());
    b.disconnect();
    CHECK(b.mirror->problems().at(0).advice.find("start the backup") == 0);
}

TEST_CASE("what cannot be recorded is not relied upon") {
    Bench b(MirrorMode::sync);
    b.remember_fails = true;
    REQUIRE(b.connect().empty());
    b.deliver_all();
    CHECK(b.attachment == Attachment::never);
    b.append("t/1", "x");
    CHECK(!b.mirror->holds());
    b.remember_fails = false;
    b.deliver_all();
    CHECK(b.attachment == Attachment::attached);
    b.remember_fails = true;
    b.disconnect();
    b.append("t/1", "y");
    b.mirror->came(Bench::person, wire::AskMirror{wire::opening_form, true}, 1);
    CHECK(b.mirror->holds());
}

TEST_CASE("a lagging copy says by how much, and one too far behind is made again") {
    Bench b(MirrorMode::lagging);
    b.backlog_bytes = 20'000;
    b.open_scheduler();
    REQUIRE(b.connect().empty());
    b.deliver_all();
    b.clock = b.clock + seconds(100);
    b.append("t/1", "x");
    b.clock = b.clock + seconds(3);
    b.append("t/1", "y");
    const auto s = b.status();
    CHECK(s.state == "behind");
    CHECK(s.lag_turns == 2);
    CHECK(s.lag_bytes > 0);
    CHECK(s.lag_s == 3);
    CHECK(!b.mirror->holds());
    for (int i = 0; i < 100; ++i) b.append("t/1", std::string(300, 'b'));
    CHECK(said(b, "too far behind"));
    b.deliver_all();
    CHECK(b.status().state == "current");
    CHECK(b.copied() == b.history[b.store->turn()]);
}

TEST_CASE("the copy of another store is not overwritten, nor one that knows more") {
    Bench b(MirrorMode::sync);
    REQUIRE(b.connect().empty());
    b.deliver_all();
    const Files before = b.copied();

    Bench other(MirrorMode::sync, Attachment::never, {0xbeef, 1});
    other.copy_disk = b.copy_disk.killed();
    REQUIRE(other.connect().empty());
    other.deliver_all();
    CHECK(other.refused.find("another store") != std::string::npos);
    CHECK(other.copied() == before);

    Bench old(MirrorMode::sync);  // the same store, restored from long ago
    b.append("t/1", "x");
    b.deliver_all();
    old.copy_disk = b.copy_disk.killed();
    REQUIRE(old.connect().empty());
    CHECK(old.refused.find("is ahead") != std::string::npos);
    CHECK(old.copied() == b.copied());
}

TEST_CASE("a scheduler whose copy was promoted is fenced") {
    Bench b(MirrorMode::sync);
    REQUIRE(b.connect().empty());
    b.deliver_all();
    b.disconnect();
    b.seen = {0xfeed, 4};
    REQUIRE(b.connect().empty());
    CHECK(b.fenced_by == 4);
    CHECK(b.to_backup.empty());

    Bench fresh(MirrorMode::sync, Attachment::never, {0xbeef, 1});  // a new pool in the same directory
    fresh.seen = {0xfeed, 4};
    REQUIRE(fresh.connect().empty());
    CHECK(fresh.fenced_by == 0);
}

TEST_CASE("promoting says the epoch in a turn of its own, and an old scheduler's copy of it is refused") {
    Bench b(MirrorMode::sync);
    REQUIRE(b.connect().empty());
    b.append("t/1", "kept");
    b.deliver_all();
    const std::uint64_t turn = b.copy->turn();
    const auto place = b.copy->promote(4);
    REQUIRE(place);
    CHECK(b.copy->turn() == turn + 1);
    CHECK(b.copy->identity().epoch == 4);
    REQUIRE(b.copy->promote(4));  // repeated: nothing more
    CHECK(b.copy->turn() == turn + 1);
    CHECK(b.copied()["t/1/log"] == "kept");
    b.disconnect();
    REQUIRE(b.connect().empty());
    CHECK(b.fenced_by != 0);
}

TEST_CASE("contents go ahead of the turns, and what the library has forgotten goes") {
    Bench b(MirrorMode::sync);
    const std::string digest(limits::digest_bytes, 'd'), empty(limits::digest_bytes, 'e');
    b.add_content(digest, std::string(700'000, 'c'));
    REQUIRE(b.connect().empty());
    b.deliver_all();
    CHECK(b.promised_contents.count(digest) == 1);
    b.add_content(empty, "");
    b.append("t/1", "names it");
    REQUIRE(b.to_backup.size() == 2);
    CHECK(b.to_backup[0].step == wire::MirrorStep::content);
    b.deliver_all();
    CHECK(b.copy->contents()->size() == 2);
    b.library->remove(digest);
    b.append("t/1", "and not any more");
    b.deliver_all();
    REQUIRE(b.copy->contents()->size() == 1);
    CHECK(b.copy->contents()->front() == empty);
    b.disconnect();
    REQUIRE(b.connect().empty());
    CHECK(b.to_backup.empty());  // it has all
}

TEST_CASE("a copy that has rotted is made again, the rest of the way it is as before") {
    Bench b(MirrorMode::sync);
    REQUIRE(b.connect().empty());
    b.append("t/1", std::string(1000, 'x'));
    b.deliver_all();
    const std::string slot = *b.copy_disk.read("current", 0, 1);
    REQUIRE(b.copy->tidy());  // no root of the turn is left that could mend it
    b.disconnect();
    b.copy_disk.cut(slot + "/t/1/log", 10);
    REQUIRE(b.connect().empty());
    b.append("t/1", "y");
    b.deliver_all();  // the turn does not fit
    CHECK(!b.connected);
    CHECK(b.mirror->holds());
    CHECK(!b.copy->whole());
    b.connected = true;  // again, with the same Copy
    b.mirror->came(Bench::backup, wire::MirrorCall{}, 0);
    b.mirror->came(Bench::backup, wire::MirrorContents{"", true}, 0);
    b.mirror->pump(true);
    b.deliver_all();
    CHECK(!b.mirror->holds());
    CHECK(b.copied() == b.history[b.store->turn()]);
}

TEST_CASE("pages that make no sense change nothing and are told of") {
    Bench b(MirrorMode::sync);
    REQUIRE(b.connect().empty());
    b.append("t/1", "x");
    b.deliver_all();
    const auto page = [](wire::MirrorStep step, const std::string &path = "") {
        wire::MirrorPage p;
        p.step = step;
        p.name = 0xfeed, p.epoch = 3, p.turn = 99;
        p.path = path;
        p.bytes = "bytes";
        p.size = 5;
        return p;
    };
    using wire::MirrorStep;
    const Files before = b.copied();
    CHECK(!b.copy->take(page(MirrorStep::file, "t/1/log")));  // nothing was begun
    CHECK(!b.copy->take(page(MirrorStep::whole)));
    CHECK(!b.copy->take(page(MirrorStep::turn)));
    CHECK(!b.copy->take(page(MirrorStep::content)));
    REQUIRE(b.connect().empty());
    wire::MirrorPage other = page(MirrorStep::begin);
    other.name = 1;
    CHECK(!b.copy->take(other));
    REQUIRE(b.copy->take(page(MirrorStep::begin)));
    for (const char *path :
         {"../x", "t/../../x", "/etc/x", "format", "turns/applied", "t/x.tmp", "library/00/11", "lock", ""})
        CHECK(!b.copy->take(page(MirrorStep::file, path)));
    for (const char *path : {"..", "turns", "", "a/../b", "library"})
        CHECK(!b.copy->take(page(MirrorStep::removed, path)));
    CHECK(!b.copy->take(page(MirrorStep::whole)));  // it has no name: no store of ours
    REQUIRE(b.connect().empty());
    CHECK(b.copy->whole());
    CHECK(b.copied() == before);
}

}  // namespace dcs::mirror_test
