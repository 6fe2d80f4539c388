#include "store/store.h"

#include "store/names.h"
#include "support/about.h"
#include "support/catch.h"
#include "support/sim_disk.h"

namespace dcs::store {
namespace {

using test::Fault;
using test::SimDisk;

const Forest forest{
    {"grain",
     {{{"params", Shape::pair, Action::replace, ""}},
      {{"note", Shape::singleton, Action::discard, ""}},
      {{"out", Shape::pair, Action::append, ""}},
      {{"slot1", Shape::pair, Action::alternate, ""}},
      {{"slot2", Shape::pair, Action::alternate, ""}}},
     {"status", Shape::pair, Action::replace, ""}},
};

StoreOptions small() {
    StoreOptions options;
    options.journal_bytes = 0;
    options.behind_turns = 0;
    options.inline_limit = 50;
    options.reserve_bytes = 100;
    return options;
}

std::unique_ptr<Store> open(SimDisk &disk, StoreOptions options = small(), RecoveryReport *report = nullptr) {
    auto opened = Store::open(disk, forest, options, report);
    INFO((opened ? "" : opened.status().text));
    REQUIRE(opened);
    return std::move(*opened);
}

TreeUpdate update(const char *directory, std::vector<NodeUpdate> nodes) {
    return TreeUpdate{directory, "grain", std::move(nodes), false};
}
TreeUpdate removal(const char *directory) { return TreeUpdate{directory, "grain", {}, true}; }

void commit(Store &store, const std::vector<TreeUpdate> &updates) {
    const CommitResult result = store.commit(updates);
    INFO(result.status.text);
    REQUIRE(result.answer == Answer::done);
}

std::string content(Store &store, const std::string &path) {
    const auto bytes = store.read(path, 0, 1 << 20);
    return bytes ? *bytes : "(" + std::string(code_name(bytes.status().code)) + ")";
}

}  // namespace

TEST_CASE("an empty directory becomes an empty store") {
    SimDisk disk;
    auto store = open(disk);
    CHECK(store->turn() == 0);
    CHECK(store->list("")->empty());
    CHECK(store->pending_bytes() == 0);
    CHECK(disk.files().at("format").substr(0, 20) == "dcs backing store 3\n");
    CHECK(disk.files().at("reserve").size() == 100);
    CHECK(open(disk)->turn() == 0);
}

TEST_CASE("reads see a committed turn at once, and after reopening") {
    SimDisk disk;
    const std::string big(200, 'b');
    {
        auto store = open(disk);
        commit(*store, {update("g/1", {{"status", "ready", 0}, {"params", big, 0}, {"out", "one,", 0}}),
                        update("g/2", {{"status", "ready too", 0}})});
        commit(*store, {update("g/1", {{"out", "two,", 4}, {"status", "running", 0}})});
        commit(*store, {update("g/1", {{"out", std::string(60, 'x'), 8}, {"note", "forget me", 0}})});
        CHECK(store->turn() == 3);
        CHECK(store->pending_bytes() > 260);
        CHECK(content(*store, "g/1/status") == "running");
        CHECK(content(*store, "g/1/params") == big);
        CHECK(content(*store, "g/1/out") == "one,two," + std::string(60, 'x'));
        CHECK(*store->read("g/1/out", 4, 3) == "two");
        CHECK(content(*store, "g/1/note") == "(NOT_FOUND)");
        CHECK(*store->list("g") == std::vector<std::string>{"1/", "2/"});
        CHECK(*store->list("g/1") == std::vector<std::string>{"out", "params", "status"});
        CHECK(*store->list("") == std::vector<std::string>{"g/"});
    }
    RecoveryReport report;
    SimDisk after = disk.crashed();
    auto store = open(after, small(), &report);
    CHECK(report.turns_finished == 3);
    CHECK(store->turn() == 3);
    CHECK(store->pending_bytes() == 0);
    CHECK(content(*store, "g/1/out") == "one,two," + std::string(60, 'x'));
    CHECK(content(*store, "g/2/status") == "ready too");
}

TEST_CASE("what one turn says about one file twice ends as the last says") {
    SimDisk disk;
    auto store = open(disk);
    commit(*store, {update("g/1", {{"status", "a", 0}, {"out", "12345678", 0}}),
                    update("g/1", {{"status", "b", 0}, {"out", "9", 8}}), update("g/1", {{"out", "X", 3}})});
    CHECK(content(*store, "g/1/status") == "b");
    CHECK(content(*store, "g/1/out") == "123X");
    commit(*store,
           {update("g/1", {{"status", "gone", 0}}), removal("g/1"), update("g/1", {{"out", std::string(99, 'n'), 0}})});
    CHECK(content(*store, "g/1/status") == "(NOT_FOUND)");
    CHECK(content(*store, "g/1/out") == std::string(99, 'n'));
    SimDisk after = disk.crashed();
    auto again = open(after);
    CHECK(content(*again, "g/1/out") == std::string(99, 'n'));
    CHECK(*again->list("g/1") == std::vector<std::string>{"out"});
}

TEST_CASE("many records of a turn are one write to each file, small or big") {
    for (const std::size_t records : {1u, 1000u}) {
        SimDisk disk;
        auto store = open(disk);
        std::vector<TreeUpdate> updates;
        std::string expected[2];
        for (std::size_t i = 0; i < 2 * records; ++i) {
            std::string &log = expected[i % 2];
            const std::string record = "record " + std::to_string(i) + ";";
            updates.push_back(update(i % 2 ? "g/1" : "g/2", {{"status", "s" + std::to_string(i), 0}}));
            updates.push_back(update(i % 2 ? "g/1" : "g/2", {{"out", record, log.size()}}));
            log += record;
        }
        const std::uint64_t before = disk.calls();
        commit(*store, updates);
        CHECK(disk.calls() - before < 30);
        SimDisk after = disk.crashed();
        auto again = open(after);
        for (const auto &s : {&store, &again}) {
            CHECK(content(**s, "g/1/out") == expected[1]);
            CHECK(content(**s, "g/2/out") == expected[0]);
            CHECK(content(**s, "g/1/status") == "s" + std::to_string(2 * records - 1));
        }
    }
    // A gap between two records of a turn is found as one in the file is.
    SimDisk disk;
    auto store = open(disk);
    const auto result = store->commit({update("g/1", {{"out", "12345", 0}}), update("g/1", {{"out", "x", 6}})});
    CHECK(result.answer == Answer::nothing);
    CHECK(result.status.code == Code::io_error);
    CHECK(result.status.text == about("g/1/out 5 6"));
}

TEST_CASE("a removed tree is gone with what is below it, and parents that became empty") {
    SimDisk disk;
    auto store = open(disk);
    commit(*store, {update("s/1", {{"status", "a", 0}}), update("s/1/g/1", {{"status", "a", 0}}),
                    update("t/1", {{"status", "a", 0}})});
    commit(*store, {removal("s/1/g/1")});
    CHECK(*store->list("s/1") == std::vector<std::string>{"status"});
    commit(*store, {removal("s/1"), removal("u/never/there")});
    CHECK(*store->list("") == std::vector<std::string>{"t/"});
    SimDisk after = disk.crashed();
    CHECK(*open(after)->list("") == std::vector<std::string>{"t/"});
}

TEST_CASE("a turn of small nodes costs two syncs, however many trees it touches") {
    SimDisk disk;
    auto store = open(disk);
    for (const int trees : {1, 100}) {
        std::vector<TreeUpdate> updates;
        for (int i = 0; i < trees; ++i)
            updates.push_back(update(("g/" + std::to_string(i)).c_str(), {{"status", "x", 0}}));
        const std::uint64_t before = disk.syncs();
        commit(*store, updates);
        CHECK(disk.syncs() - before == 2);
    }
    const std::uint64_t before = disk.syncs();
    REQUIRE(store->flush().answer == Answer::done);
    CHECK(disk.syncs() - before == 3);  // everything, the stamp, its name
    CHECK(store->pending_bytes() == 0);
    CHECK(disk.files("turns").size() == 1);
    REQUIRE(store->flush().answer == Answer::done);
    CHECK(disk.syncs() - before == 3);
}

TEST_CASE("roots are synced away by count and by bytes") {
    SimDisk disk;
    StoreOptions options = small();
    options.flush_turns = 3;
    auto store = open(disk, options);
    for (int i = 1; i <= 7; ++i) {
        commit(*store, {update("g/1", {{"status", "x", 0}})});
        // The stamp, what waits, and of what was synced away what no commit has removed yet.
        const std::size_t roots = disk.files("turns").size() - 1;
        CHECK(roots >= static_cast<std::size_t>(i % 3));
        CHECK(roots <= 3 + static_cast<std::size_t>(i % 3));
    }
    REQUIRE(store->flush().answer == Answer::done);
    CHECK(disk.files("turns").size() == 1);
    const std::uint64_t stamp = disk.files("turns").begin()->second.size();
    for (int i = 1; i <= 7; ++i) {  // of unlike sizes, the large ones first
        const std::size_t length = i % 3 == 1 ? 40 : 1;
        commit(*store, {update("g/1", {{"status", std::string(length, 's'), 0}}),
                        update("g/2", {{"status", std::string(length, 's'), 0}})});
        std::uint64_t bytes = 0;
        for (const auto &[name, content] : disk.files("turns")) bytes += content.size();
        CHECK(store->pending_bytes() == bytes - stamp);
    }
    REQUIRE(store->flush().answer == Answer::done);
    options.flush_turns = 1000;
    options.flush_bytes = 1000;
    auto other = open(disk, options);
    std::uint64_t one_root = 0;  // longer than flush_bytes, so that each is synced away at once
    for (int i = 1; i <= 20; ++i) {
        commit(*other, {update("g/1", {{"params", std::string(300, 'p'), 0}})});
        if (i == 1) one_root = other->pending_bytes();
        CHECK(other->pending_bytes() == one_root);  // the next commit removes it
    }
    CHECK(one_root > 1000);
    REQUIRE(other->flush().answer == Answer::done);
    CHECK(other->pending_bytes() == 0);
}

TEST_CASE("no second version of a big node waits beside the first") {
    SimDisk disk;
    StoreOptions options = small();
    options.layout.block = 64;
    auto store = open(disk, options);
    for (int i = 0; i < 5; ++i) {
        commit(*store, {update("g/1", {{"params", std::string(10000, 'p'), 0}})});
        CHECK(disk.used_bytes() < 2 * 10000 + 1000);  // B5
    }
}

TEST_CASE("of two files that take turns the one that no root names is written in place, before the commit") {
    SimDisk disk;
    auto store = open(disk);
    const std::string first(60, 'a'), second(70, 'b'), third(55, 'c');
    commit(*store, {update("g/1", {{"slot1", first, 0}, {"status", "1", 0}})});
    commit(*store, {update("g/1", {{"slot2", second, 0}, {"status", "2", 0}})});
    REQUIRE(store->flush().answer == Answer::done);
    std::size_t most = 0;
    disk.after_operation = [&] { most = std::max(most, disk.files("g/1").size()); };
    commit(*store, {update("g/1", {{"slot1", third, 0}, {"status", "1", 0}})});
    disk.after_operation = nullptr;
    CHECK(most == 3);  // no new file beside the old one
    CHECK(disk.crashed().files("g/1").at("g/1/slot1") == third);
    CHECK(disk.files("turns").begin()->second.find(third) == std::string::npos);
    SimDisk again = disk.crashed();
    auto reopened = open(again);
    CHECK(content(*reopened, "g/1/status") == "1");
    CHECK(content(*reopened, "g/1/slot1") == third);
    CHECK(content(*reopened, "g/1/slot2") == second);
}

TEST_CASE("many big nodes of a turn are synced by one call") {
    SimDisk disk;
    auto store = open(disk);
    std::vector<std::string> names;
    std::vector<TreeUpdate> turn;
    for (int i = 0; i < 100; ++i) names.push_back("g/" + std::to_string(i));
    for (const std::string &name : names)
        turn.push_back(update(name.c_str(), {{"slot1", std::string(60, 'a'), 0}, {"status", "1", 0}}));
    commit(*store, turn);
    REQUIRE(store->flush().answer == Answer::done);
    for (TreeUpdate &one : turn) one.nodes[0].file = "slot2";
    const std::uint64_t before = disk.syncs();
    commit(*store, turn);
    CHECK(disk.syncs() - before == 3);  // them, the root and its name
}

TEST_CASE("no updates: done, and no turn") {
    SimDisk disk;
    auto store = open(disk);
    commit(*store, {});
    CHECK(store->turn() == 0);
}

TEST_CASE("foreign directories are refused") {
    SimDisk newer;
    open(newer);
    newer.flip("format", 18, 7);
    newer.flip("format", newer.files().at("format").size() - 2, 7);
    auto opened = Store::open(newer, forest, small(), nullptr);
    REQUIRE_FALSE(opened);
    CHECK(opened.status().text.find("`dcs backing store 3`") != std::string::npos);

    SimDisk home;
    REQUIRE(home.create("thesis.tex", "precious"));
    opened = Store::open(home, forest, small(), nullptr);
    REQUIRE_FALSE(opened);
    CHECK(opened.status().text.find("thesis.tex") != std::string::npos);
    CHECK(home.files().size() == 1);

    SimDisk locked;  // the scheduler's lock lies there already
    REQUIRE(locked.create("lock", ""));
    REQUIRE(Store::open(locked, forest, small(), nullptr));
    CHECK(locked.files().count("lock") == 1);

    SimDisk headless;  // a store that lost its format file
    commit(*open(headless), {update("g/1", {{"status", "x", 0}})});
    REQUIRE(headless.remove("format"));
    REQUIRE_FALSE(Store::open(headless, forest, small(), nullptr));
}

TEST_CASE("a forest with a circle opens nothing") {
    SimDisk disk;
    const Forest circle{
        {"a", {{{"s", Shape::singleton, Action::information, "a"}}}, {"status", Shape::pair, Action::replace, ""}}};
    CHECK_FALSE(Store::open(disk, circle, small(), nullptr));
    CHECK(disk.files().empty());
}

TEST_CASE("strays of a turn that never was are discarded and counted") {
    SimDisk disk;
    commit(*open(disk), {update("g/1", {{"status", "x", 0}})});
    REQUIRE(disk.create(root_temporary(2), "half"));
    REQUIRE(disk.create(big_temporary("g/1", "params", 2), "half"));
    REQUIRE(disk.create("g/1/status.new", "half"));
    REQUIRE(disk.make_dir("g/2"));
    REQUIRE(disk.create(big_temporary("g/2", "params", 2), "half"));
    RecoveryReport report;
    auto store = open(disk, small(), &report);
    CHECK(report.temporaries_discarded == 4);
    CHECK(*store->list("g") == std::vector<std::string>{"1/"});
    CHECK(*store->list("g/1") == std::vector<std::string>{"status"});
}

TEST_CASE("after a failed sync nothing is answered any more") {
    SimDisk disk;
    auto store = open(disk);
    commit(*store, {update("g/1", {{"status", "old", 0}})});
    disk.fail_syncs(true);
    CHECK(store->commit({update("g/1", {{"status", "new", 0}})}).answer == Answer::unknown);
    disk.fail_syncs(false);
    CHECK(store->commit({update("g/1", {{"status", "new", 0}})}).answer == Answer::unknown);
    CHECK(store->flush().answer == Answer::unknown);
    auto again = open(disk);
    CHECK(content(*again, "g/1/status") == "old");
}

TEST_CASE("a flush that finds no descriptor is put off, not failed") {
    SimDisk disk;
    auto store = open(disk);
    commit(*store, {update("g/1", {{"status", "old", 0}})});
    disk.fail_at(5, Fault::limit, true);  // the syncs work, making the stamp does not
    const CommitResult put_off = store->flush();
    CHECK(disk.faults_hit() > 0);
    disk.clear_faults();
    REQUIRE(put_off.answer == Answer::done);
    CHECK(put_off.status.code == Code::limit);
    CHECK(store->pending_bytes() > 0);
    REQUIRE(store->flush().answer == Answer::done);
    CHECK(store->pending_bytes() == 0);
}

}  // namespace dcs::store
