// What the store says of what it cannot believe, word for word, and what lies there afterwards.
#include "base/bytes.h"
#include "store/copy.h"
#include "store/disk_posix.h"
#include "store/identity.h"
#include "store/names.h"
#include "store/store.h"
#include "store/sub_disk.h"
#include "support/about.h"
#include "support/catch.h"
#include "support/sim_disk.h"

namespace dcs::store {
namespace {

using test::SimDisk;

const Forest forest{
    {"grain",
     {{{"params", Shape::pair, Action::replace, ""}}, {{"out", Shape::pair, Action::append, ""}}},
     {"status", Shape::pair, Action::replace, ""}},
    identity_tree(),
};

StoreOptions small() {
    StoreOptions options;
    options.journal_bytes = 0;
    options.behind_turns = 0;
    options.inline_limit = 50;
    options.reserve_bytes = 100;
    options.layout = RootLayout{512, 1000};
    return options;
}

Result<std::unique_ptr<Store>> try_open(Disk &disk, RecoveryReport *report = nullptr, StoreOptions options = small()) {
    return Store::open(disk, forest, options, report);
}

std::unique_ptr<Store> open(Disk &disk, RecoveryReport *report = nullptr, StoreOptions options = small()) {
    auto opened = try_open(disk, report, options);
    INFO((opened ? "" : opened.status().text));
    REQUIRE(opened);
    return std::move(*opened);
}

TreeUpdate status(const char *directory, const std::string &bytes) { return {directory, "grain", {{"status", bytes}}}; }
TreeUpdate removal(const char *directory) { return {directory, "grain", {}, true}; }

void commit(Store &store, const std::vector<TreeUpdate> &updates) {
    const CommitResult result = store.commit(updates);
    INFO(result.status.text);
    REQUIRE(result.answer == Answer::done);
}

// A store after its first turn, which waits in turns/.
SimDisk with_turn(const TreeUpdate &update) {
    SimDisk disk;
    commit(*open(disk), {update});
    return disk.crashed();
}

void spoil(SimDisk &disk, const std::string &path) {
    disk.damage(path, 0, 1u << 20, [](char) { return '\xff'; });
}

// More directories below it than any tree has.
void make_deep(Disk &disk, std::string path) {
    for (int i = 0; i < 70; ++i, path += "/d") REQUIRE(disk.make_dir(path));
}
std::string deep(std::string path, int depth) {
    for (int i = 0; i < depth; ++i) path += "/d";
    return path;
}

// Another disk, but for what a test changes.
struct Passed : Disk {
    Disk &disk;
    explicit Passed(Disk &to) : disk(to) {}
    Status create(const std::string &p, std::string_view b) override { return disk.create(p, b); }
    Status truncate_append(const std::string &p, std::uint64_t l, std::string_view b) override {
        return disk.truncate_append(p, l, b);
    }
    Status overwrite(const std::string &p, std::uint64_t o, std::string_view b) override {
        return disk.overwrite(p, o, b);
    }
    Status rewrite(const std::string &p, std::string_view b) override { return disk.rewrite(p, b); }
    Result<std::string> read(const std::string &p, std::uint64_t o, std::uint64_t m) override {
        return disk.read(p, o, m);
    }
    Result<std::uint64_t> size(const std::string &p) override { return disk.size(p); }
    Status rename(const std::string &f, const std::string &t) override { return disk.rename(f, t); }
    Status link(const std::string &f, const std::string &t) override { return disk.link(f, t); }
    Status remove(const std::string &p) override { return disk.remove(p); }
    Result<bool> make_dir(const std::string &p) override { return disk.make_dir(p); }
    Status remove_dir(const std::string &p) override { return disk.remove_dir(p); }
    Result<std::vector<std::string>> list(const std::string &p) override { return disk.list(p); }
    Status sync_file(const std::string &p) override { return disk.sync_file(p); }
    Status sync_dir(const std::string &p) override { return disk.sync_dir(p); }
    Status sync_all() override { return disk.sync_all(); }
    Result<std::uint64_t> free_bytes() override { return disk.free_bytes(); }
};

// The number of steps in both heads of a root, with checksums that fit.
std::string with_count(std::string root, std::uint32_t count) {
    const std::size_t head = root.size() - root.find("DCSTURN", 1), at = 8 + 4 + 4 + 8 + 8 + 1;
    for (const std::size_t start : {std::size_t{0}, root.size() - head}) {
        const auto put = [&](std::size_t place, std::uint32_t value) {
            for (std::size_t i = 0; i < 4; ++i) root[start + place + i] = static_cast<char>(value >> (8 * i));
        };
        put(at, count);
        put(head - 4, crc32c(std::string_view(root).substr(start, head - 4)));
    }
    return root;
}

Step removal_step(std::string_view directory) {
    Step step;
    step.kind = StepKind::remove;
    step.directory = directory;
    return step;
}

}  // namespace

TEST_CASE("directories that are too deep for a tree are left alone, and named") {
    const std::string end = " is nested too deeply for a backing store: move it away";
    SimDisk disk;
    auto store = open(disk);
    commit(*store, {status("g/1", "a")});
    make_deep(disk, "g/1/d");
    const CommitResult removed = store->commit({removal("g/1")});
    CHECK(removed.answer == Answer::unknown);
    CHECK(removed.status.text == deep("g/1", 65) + end);
    // The removal is committed: the next start says the same before it touches a tree, and does it afterwards.
    SimDisk killed = disk.killed();
    const auto before = killed.files("g");
    CHECK(try_open(killed).status().text == deep("g/1", 63) + end);
    CHECK(killed.files("g") == before);
    CHECK(killed.size(root_name(2)));
    for (int i = 69; i >= 0; --i) REQUIRE(killed.remove_dir(deep("g/1/d", i)));
    CHECK(open(killed)->list("")->empty());

    struct Silent : Passed {
        using Passed::Passed;
        bool sync_all_reports() const override { return false; }
    };
    SimDisk other;
    Silent silent(other);
    make_deep(other, "g");
    CHECK(found_copy(silent, 3).text == deep("g", 64) + end);
    CHECK(other.size("format").status().code == Code::not_found);  // so it is no store
}

TEST_CASE("a store that others may write to commits nothing more") {
    SimDisk disk;
    bool alone = true;
    StoreOptions options = small();
    options.still_alone = [&] { return alone; };
    auto store = open(disk, nullptr, options);
    commit(*store, {status("g/1", "a")});
    alone = false;
    const auto before = disk.files();
    for (int i = 0; i < 2; ++i) {
        const CommitResult result = store->commit({status("g/1", "b")});
        CHECK(result.answer == Answer::unknown);
        CHECK(result.status.text == about("store's removed replaced"));
        alone = true;  // too late: a caller may have written
    }
    CHECK(store->commit_copied(2, "").answer == Answer::unknown);
    CHECK(disk.files() == before);
}

TEST_CASE("turns of another store that do not fit are called what they are, and change nothing") {
    SimDisk disk;
    auto store = open(disk);
    const auto before = disk.files();
    const auto says = [&](std::uint64_t turn, const std::string &root) {
        const CommitResult result = store->commit_copied(turn, root);
        CHECK(result.answer == Answer::nothing);
        CHECK(result.status.code == Code::invalid);
        return result.status.text;
    };
    static const std::string bytes(9, 'x');
    Step step{StepKind::inside, "g/1", "grain", "status", Action::replace, 0, bytes.size(), crc32c(bytes), bytes};
    const std::string good = encode_for_copy(1, {step});
    CHECK(says(7, good) == about("turn 7 not"));
    CHECK(says(1, "DCS") == about("turn 1 short"));
    CHECK(says(1, with_count(good, 1u << 30)) == about("turn 1 contain"));
    CHECK(says(1, with_count(good, 9)) == about("turn 1 contain"));
    CHECK(says(1, with_count(good, 0)) == about("turn 1 bytes"));
    step.checksum ^= 1;
    CHECK(says(1, encode_for_copy(1, {step})) == "turn 1 arrived incomplete");
    step.kind = StepKind::beside;  // its bytes would lie in a file that never comes
    CHECK(says(1, encode_turn(1, {step}, RootLayout{1, 0})) == "turn 1 arrived incomplete");
    CHECK(disk.files() == before);
    CHECK(store->commit_copied(1, good).answer == Answer::done);
    CHECK(*store->read("g/1/status", 0, 99) == bytes);
}

TEST_CASE("what a root says in vain") {
    const std::string root = encode_turn(12, {removal_step("g/1"), removal_step("g/2")}, RootLayout{512, 1000});
    REQUIRE(decode_turn(with_count(root, 2), 12, true)->steps.size() == 2);
    CHECK(decode_turn(with_count(root, 1), 12, true).status().text == about("bytes last step"));
    CHECK(decode_turn(with_count(root, 3), 12, true).status().text == about("states steps contain"));
}

TEST_CASE("without its format and its stamp, or without a stamp while turns wait, a store is not touched") {
    SimDisk disk = with_turn(status("g/1", "a"));
    SimDisk both = disk;
    spoil(disk, "turns/applied");
    auto before = disk.files();
    CHECK(try_open(disk).status().text ==
          about("turns/applied cannot turns/00000000000000000001.commit nothing directory"));
    CHECK(disk.files() == before);
    spoil(both, "turns/applied");
    spoil(both, "format");
    before = both.files();
    const auto opened = try_open(both);
    CHECK(opened.status().code == Code::io_error);
    CHECK(opened.status().text == about("neither file format nor turns/applied read restore state directory backup"));
    CHECK(both.files() == before);
}

TEST_CASE("bytes of a turn that are damaged cost their tree, which says so") {
    const std::string root = root_name(1), big = big_temporary("g/1", "params", 1);
    struct Case {
        TreeUpdate update;
        std::string path, what;
    };
    const Case cases[] = {
        {status("g/1", std::string(40, 'q')), root, "the bytes of status in " + root + " are damaged"},
        {{"g/1", "grain", {{"params", std::string(200, 'q')}}}, big, big + " is damaged"}};
    for (const Case &one : cases) {
        SimDisk disk = with_turn(one.update);
        disk.damage(one.path, 0, 1u << 20, [](char c) { return c == 'q' ? 'Q' : c; });
        RecoveryReport report;
        auto store = open(disk, &report);
        REQUIRE(report.damaged.size() == 1);
        CHECK(report.damaged[0].path == "g/1");
        CHECK(report.damaged[0].what == "in turn 1 " + one.what);
        CHECK(*store->read("g/1/DAMAGED", 0, 999) ==
              about("set aside turn 1 " + one.what + " Later commits missing Remove restore backup"));
        const CommitResult result = store->commit({status("g/2", "b"), status("g/1", "b")});
        CHECK(result.answer == Answer::nothing);
        CHECK(result.status.text == about("g/1 g/1/DAMAGED describes directory"));
        CHECK(*store->list("") == std::vector<std::string>{"g/"});
        CHECK(*store->list("g") == std::vector<std::string>{"1/"});
        commit(*store, {removal("g/1"), status("g/1", "anew")});
        CHECK(*store->list("g/1") == std::vector<std::string>{"status"});
    }
}

TEST_CASE("turns that are missing, without a format, or cut while they are read are not gone on without") {
    const std::string
        second = root_name(2),
        advice =
            "; it belongs to a committed turn and was left untouched: restore it (or the whole state directory) from a "
            "backup, or start once with its number as the lost turn to accept";
    SimDisk disk;
    {
        auto store = open(disk);
        for (const char *bytes : {"a", "b", "c"}) commit(*store, {status("g/1", bytes)});
    }
    SimDisk missing = disk.killed(), foreign = disk.killed(), shorter = disk.killed();
    REQUIRE(missing.remove(second));
    CHECK(try_open(missing).status().text ==
          second + " is missing, but " + root_name(3).substr(6) + " exists" + advice);

    for (const char *name : {"format", "g/1/status", "g/1", "g"}) {
        const Status removed = std::string(name).find("status") != std::string::npos || std::string(name) == "format"
                                   ? foreign.remove(name)
                                   : foreign.remove_dir(name);
        REQUIRE(removed);
    }
    const auto before = foreign.files();
    CHECK(try_open(foreign).status().text ==
          about("directory no format file contains `" + root_name(1) + "`: restore backup"));
    CHECK(foreign.files() == before);

    struct Shorter : Passed {
        using Passed::Passed;
        Result<std::string> read(const std::string &path, std::uint64_t offset, std::uint64_t max) override {
            return disk.read(path, offset, path == root_name(2) ? max - 1 : max);
        }
    };
    Shorter cut(shorter);
    CHECK(try_open(cut).status().text == about(second + " became shorter read" + advice));
    CHECK(*open(shorter)->read("g/1/status", 0, 9) == "c");
}

TEST_CASE("which store it is, read from what is left of it") {
    const auto with = [](auto change) {
        SimDisk disk;
        {
            auto store = open(disk);
            commit(*store, {identity_update({77, 3})});
            REQUIRE(store->flush().answer == Answer::done);
        }
        change(disk);
        return read_identity(*open(disk));
    };
    const auto of_another_version = [](const char *path) {
        return [path](SimDisk &disk) {
            std::string bytes = *disk.read(path, 0, 99);
            bytes[0] = 9;
            const std::uint32_t sum = crc32c(std::string_view(bytes).substr(0, bytes.size() - 4));
            for (std::size_t i = 0; i < 4; ++i) bytes[bytes.size() - 4 + i] = static_cast<char>(sum >> (8 * i));
            REQUIRE(disk.truncate_append(path, 0, bytes));
        };
    };
    const char *first = "identity/store", *second = "identity/copy";
    CHECK(with([](SimDisk &) {})->whole);
    for (const char *path : {first, second}) {
        const auto one = with([&](SimDisk &disk) { spoil(disk, path); });
        REQUIRE(one);
        CHECK(one->name == 77);
        CHECK(one->epoch == 3);
        CHECK_FALSE(one->whole);
    }
    const auto none = with([&](SimDisk &disk) { spoil(disk, first), spoil(disk, second); });
    CHECK(none.status().code == Code::io_error);
    CHECK(none.status().text == about("identity/store damaged backup's"));
    const std::string newer = ": written by another version of DCS: use the version that wrote it";
    CHECK(with(of_another_version(first)).status().text == first + newer);
    const auto rest = with([&](SimDisk &disk) { spoil(disk, first), of_another_version(second)(disk); });
    CHECK(rest.status().text == second + newer);
}

TEST_CASE("a path that is none is not renamed to") {
    char directory[] = "/tmp/dcs-words-XXXXXX";
    REQUIRE(::mkdtemp(directory) != nullptr);
    auto disk = open_posix_disk(directory, true);
    REQUIRE(disk);
    REQUIRE((*disk)->create("a", "bytes"));
    for (const char *to : {"", "..", "."}) {
        const Status status = (*disk)->rename("a", to);
        CHECK(status.code == Code::invalid);
        CHECK(status.text == "`" + std::string(to) + "` is not a path");
    }
    CHECK(*(*disk)->list("") == std::vector<std::string>{"a"});
    REQUIRE((*disk)->remove("a"));
    REQUIRE(::rmdir(directory) == 0);
}

}  // namespace dcs::store
