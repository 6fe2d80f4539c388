// Turns in the journal, and what is read before they are applied.
#include "store/journal.h"

#include "store/names.h"
#include "store/stamp.h"
#include "store/store.h"
#include "support/catch.h"
#include "support/sim_disk.h"

namespace dcs {
namespace {

using namespace store;
using test::Random;
using test::SimDisk;

constexpr std::size_t block = 64;

const Forest forest{{"grain",
                     {{{"params", Shape::pair, Action::replace, ""}, {"out", Shape::pair, Action::append, ""}}},
                     {"status", Shape::pair, Action::replace, ""}}};

StoreOptions small() {
    StoreOptions options;
    options.layout.block = block;
    options.journal_bytes = 16 * 1024;
    options.journal_turn_bytes = 4 * 1024;
    options.reserve_bytes = 64 * 1024;
    options.step_room = 64;
    options.turn_room = 256;
    return options;
}

TreeUpdate update(const std::string &directory, std::vector<NodeUpdate> nodes) {
    return TreeUpdate{directory, "grain", std::move(nodes), false};
}

std::unique_ptr<Store> open(SimDisk &disk, RecoveryReport *report = nullptr, StoreOptions options = small()) {
    auto opened = Store::open(disk, forest, options, report);
    INFO(opened.status().text);
    REQUIRE(opened);
    return std::move(*opened);
}

void commit(Store &store, const std::vector<TreeUpdate> &updates) {
    const CommitResult done = store.commit(updates);
    INFO(done.status.text);
    REQUIRE(done.answer == Answer::done);
}

SimDisk three_turns() {
    SimDisk disk(16);
    const auto store = open(disk);
    commit(*store, {update("g/1", {{"out", "first ", 0}, {"status", "1", 0}})});
    commit(*store, {update("g/1", {{"out", "second ", 6}, {"status", "2", 0}})});
    commit(*store, {update("g/2", {{"out", "third ", 0}, {"status", "3", 0}})});
    return disk.crashed();
}

}  // namespace

TEST_CASE("a turn in the journal survives any one of its blocks") {
    const std::string root(300, 'r'), old = encode_for_journal(6, std::string(500, 'o'), block);
    const std::string record = encode_for_journal(7, root, block);
    REQUIRE(record.size() == journal_bytes_for(root.size(), block));
    const std::string file = record + old.substr(record.size());
    CHECK(read_journal(file, 6, block, true).turns.at(7).root == root);
    CHECK(read_journal(file, 6, block, true).turns.size() == 1);
    CHECK(read_journal(file, 7, block, true).turns.empty());
    CHECK(read_journal(file, 7, block, true).any);
    const std::size_t copy = record.size() / 2;
    for (std::size_t at = 0; at < record.size(); ++at) {
        std::string damaged = file;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
        const JournalTurns read = read_journal(damaged, 6, block, true);
        CHECK(read.turns.at(7).root == root);
        CHECK(read.turns.at(7).repaired);
        damaged[(at + copy) % record.size()] = static_cast<char>(damaged[(at + copy) % record.size()] ^ 1);
        CHECK(read_journal(damaged, 6, block, true).turns.at(7).root.empty());
    }
}

TEST_CASE("what is stored cannot pose as a turn") {
    const std::string forged = encode_for_journal(9, "a root that was never written", block);
    for (std::size_t shift = 0; shift < block; ++shift) {
        const std::string file = encode_for_journal(8, std::string(shift, ' ') + forged + forged, block);
        const JournalTurns read = read_journal(file, 7, block, true);
        CHECK(read.turns.count(9) == 0);
        CHECK(read.turns.count(8) == 1);
    }
}

TEST_CASE("a commit is one sync, and the trees follow behind") {
    SimDisk disk(16);
    const auto store = open(disk);
    commit(*store, {update("g/1", {{"out", "a", 0}, {"status", "1", 0}})});
    const std::uint64_t syncs = disk.syncs();
    for (std::uint64_t i = 1; i <= 5; ++i)
        commit(*store, {update("g/1", {{"out", "b", i}, {"status", "s" + std::to_string(i), 0}})});
    CHECK(disk.syncs() == syncs + 5);
    CHECK(disk.files().count("g/1/out") == 0);
    CHECK(*store->read("g/1/out", 0, 100) == "abbbbb");
    CHECK(*store->read("g/1/out", 2, 3) == "bbb");
    CHECK(*store->read("g/1/status", 0, 100) == "s5");
    CHECK(*store->list("g/1") == std::vector<std::string>{"out", "status"});
    CHECK(disk.files().at("g/1/out") == "abbbbb");
    REQUIRE(store->flush().answer == Answer::done);
    store->retire_journal();
    CHECK(disk.files("turns").size() == 1);
}

TEST_CASE("reads show every committed turn, applied or not") {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        Random random(seed);
        SimDisk disk(16);
        StoreOptions options = small();
        options.behind_turns = 1 + random.below(12);
        const auto store = open(disk, nullptr, options);
        std::map<std::string, std::string> model;
        for (int turn = 0; turn < 60; ++turn) {
            const std::string directory = "g/" + std::to_string(random.below(3));
            std::string &out = model[directory + "/out"], &status = model[directory + "/status"];
            if (random.chance(10)) out.resize(random.below(out.size() + 1));
            const std::string more(random.below(30), static_cast<char>('a' + turn % 26));
            commit(*store, {update(directory, {{"out", more, out.size()}, {"status", std::to_string(turn), 0}})});
            out += more;
            status = std::to_string(turn);
            if (random.chance(5)) REQUIRE(store->flush().answer == Answer::done);
            for (const auto &[path, bytes] : model) {
                CHECK(*store->read(path, 0, 1 << 20) == bytes);
                const std::uint64_t at = random.below(bytes.size() + 2), most = random.below(40);
                CHECK(*store->read(path, at, most) == (at < bytes.size() ? bytes.substr(at, most) : ""));
            }
        }
    }
}

TEST_CASE("a turn that is damaged in both copies is named, unless a crash may have interrupted it") {
    SimDisk disk = three_turns();
    const std::string journal = disk.files().at(journal_file);
    const auto spoil = [&](std::uint64_t turn) {
        for (std::size_t at = 0; at + block <= journal.size(); at += block)
            if (journal.compare(at + 4, 4, std::string(4, '\0')) == 0 &&
                read_journal(journal.substr(at, block), turn - 1, block, true).turns.count(turn) != 0)
                disk.flip(journal_file, at + 40, 1);
    };
    SECTION("the last") {
        spoil(3);
        CHECK(open(disk)->turn() == 2);
    }
    SECTION("one in the middle") {
        spoil(2);
        const auto refused = Store::open(disk, forest, small(), nullptr);
        REQUIRE_FALSE(refused);
        CHECK(refused.status().code == Code::io_error);
        CHECK(refused.status().text.starts_with("turns/journal, turn 2: both copies of a part of it are damaged; "));
        StoreOptions accepting = small();
        accepting.accept_lost_turn = 2;
        RecoveryReport report;
        const auto store = open(disk, &report, accepting);
        CHECK(store->turn() == 3);
        REQUIRE(report.damaged.size() == 1);
        CHECK(report.damaged[0].path == "turns/journal, turn 2");
        CHECK(*store->read("g/1/status", 0, 9) == "1");
        CHECK(*store->read("g/2/status", 0, 9) == "3");
    }
}

TEST_CASE("the store of release 0.1 is read, and says then that it has a journal") {
    SimDisk disk(16);
    {
        StoreOptions files = small();
        files.journal_bytes = 0;
        files.behind_turns = 0;
        commit(*open(disk, nullptr, files), {update("g/1", {{"out", "old", 0}, {"status", "1", 0}})});
    }
    for (const std::size_t at : {std::size_t{18}, disk.files().at(format_file).size() - 2})
        disk.flip(format_file, at, '2' ^ '3');
    REQUIRE(decode_format(disk.files().at(format_file)) == Format::older);
    RecoveryReport report;
    const auto store = open(disk, &report);
    CHECK(report.damaged.empty());
    CHECK(*store->read("g/1/out", 0, 9) == "old");
    CHECK(decode_format(disk.crashed().files().at(format_file)) == Format::good);
}

}  // namespace dcs
