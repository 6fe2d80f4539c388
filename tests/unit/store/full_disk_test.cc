// B8: a full disk refuses, loses nothing, and serves again when there is room.
#include "store/names.h"
#include "store/store.h"
#include "support/catch.h"
#include "support/sim_disk.h"

namespace dcs::store {
namespace {

using test::SimDisk;

const Forest forest{{"grain",
                     {{{"out", Shape::pair, Action::append, ""}}, {{"params", Shape::pair, Action::replace, ""}}},
                     {"status", Shape::pair, Action::replace, ""}}};

constexpr std::size_t reserve = 200'000;

StoreOptions options() {
    StoreOptions o;
    o.journal_bytes = 0;
    o.behind_turns = 0;
    o.inline_limit = 1000;
    o.reserve_bytes = reserve;
    return o;
}

TreeUpdate turn(std::size_t bytes) {
    return TreeUpdate{"g/1", "grain", {{"params", std::string(bytes, 'p'), 0}, {"status", "s", 0}}, false};
}

}  // namespace

TEST_CASE("a turn that might not fit is refused before it is begun") {
    SimDisk disk;
    auto store = Store::open(disk, forest, options(), nullptr);
    REQUIRE(store);
    REQUIRE((*store)->commit({turn(10'000)}).answer == Answer::done);
    const auto before = disk.files("g");
    disk.set_capacity(disk.used_bytes() + 100'000);
    const CommitResult refused = (*store)->commit({turn(50'000)});
    CHECK(refused.answer == Answer::nothing);
    CHECK(refused.status.code == Code::no_space);
    CHECK(refused.status.text.find("bytes free") != std::string::npos);
    REQUIRE((*store)->flush().answer == Answer::done);
    CHECK(disk.files("g").at("g/1/params") == before.at("g/1/params"));
    CHECK(disk.files("g").size() == 2);
    CHECK((*store)->turn() == 1);
    CHECK((*store)->commit({turn(500)}).answer == Answer::done);  // a small one still fits
    disk.set_capacity(~0ull);
    CHECK((*store)->commit({turn(50'000)}).answer == Answer::done);
}

TEST_CASE("a committed turn is finished with the reserve when the disk fills up meanwhile") {
    SimDisk disk;
    auto store = Store::open(disk, forest, options(), nullptr);
    REQUIRE(store);
    REQUIRE((*store)->commit({turn(900)}).answer == Answer::done);
    // Another caller takes all that is left at the moment of the commit.
    const std::string root = root_name(2);
    disk.after_operation = [&] {
        if (disk.files("turns").count(root)) disk.set_capacity(disk.used_bytes());
        if (disk.files("turns").count(root)) disk.after_operation = nullptr;
    };
    const CommitResult result = (*store)->commit({turn(950)});
    INFO(result.status.text);
    CHECK(result.answer == Answer::done);
    CHECK(disk.files().at("reserve").size() < reserve);
    CHECK(disk.files().at("g/1/params").size() == 950);

    // While any of the reserve is missing, nothing new; once there is room for it again, it comes first.
    CHECK((*store)->commit({turn(10)}).status.code == Code::no_space);
    disk.set_capacity(disk.used_bytes() + 80'000);
    REQUIRE(disk.remove("reserve"));  // all of it, and the rest of the disk is another caller's
    disk.set_capacity(disk.used_bytes() + 80'000);
    store = Store::open(disk, forest, options(), nullptr);
    REQUIRE(store);
    CHECK((*store)->commit({turn(10)}).status.code == Code::no_space);
    disk.set_capacity(disk.used_bytes() + reserve + 200'000);
    CHECK((*store)->commit({turn(10)}).answer == Answer::done);
    CHECK(disk.files().at("reserve").size() == reserve);
}

TEST_CASE("recovery on a full disk finishes what was committed") {
    SimDisk disk;
    {
        auto store = Store::open(disk, forest, options(), nullptr);
        REQUIRE(store);
        for (int i = 0; i < 5; ++i) REQUIRE((*store)->commit({turn(5'000)}).answer == Answer::done);
    }
    SimDisk after = disk.crashed();
    after.set_capacity(after.used_bytes());
    RecoveryReport report;
    auto store = Store::open(after, forest, options(), &report);
    INFO((store ? "" : store.status().text));
    REQUIRE(store);
    CHECK((*store)->turn() == 5);
    CHECK((*store)->read("g/1/params", 0, 10'000)->size() == 5'000);
}

TEST_CASE("reserve commits go on until the reserve is truly eaten, ordinary ones do not touch it") {
    SimDisk disk;
    auto store = Store::open(disk, forest, options(), nullptr);
    REQUIRE(store);
    std::uint64_t length = 0;
    const auto kill = [&length](std::size_t bytes) {
        return TreeUpdate{"g/1", "grain", {{"out", std::string(bytes, 'k'), length}, {"status", "killed", 0}}, false};
    };
    REQUIRE((*store)->commit({kill(100)}).answer == Answer::done);
    length += 100;
    disk.set_capacity(disk.used_bytes());
    int done = 0;
    CommitResult last;
    for (; done < 5000; ++done) {
        if (done == 10) {
            // A caller takes what the last flush has freed: an ordinary commit finds nothing.
            disk.set_capacity(disk.used_bytes());
            const auto before = disk.files().at("reserve").size();
            const CommitResult refused = (*store)->commit({kill(100)});
            CHECK(refused.answer == Answer::nothing);
            CHECK(refused.status.code == Code::no_space);
            CHECK(disk.files().at("reserve").size() > before - 40'000);  // the stamp of the flush, at most
        }
        last = (*store)->commit({kill(100)}, Room::reserve);
        if (last.answer != Answer::done) break;
        length += 100;
    }
    CHECK(done > 500);
    CHECK(done < 5000);
    CHECK(last.answer == Answer::nothing);
    CHECK(last.status.code == Code::no_space);
    CHECK(*disk.size("g/1/out") == length);
    SimDisk after = disk.crashed();
    after.set_capacity(after.used_bytes());
    auto again = Store::open(after, forest, options(), nullptr);
    INFO((again ? "" : again.status().text));
    REQUIRE(again);
    CHECK(*after.size("g/1/out") == length);
    CHECK((*again)->read("g/1/status", 0, 10).operator*() == "killed");
    // Room again, and everything goes on by itself.
    CHECK((*store)->commit({kill(100)}).answer == Answer::nothing);
    disk.set_capacity(~0ull);
    CHECK((*store)->commit({kill(100)}).answer == Answer::done);
    CHECK(disk.files().at("reserve").size() == reserve);
}

TEST_CASE("a reserve commit is finished though everything free is taken at its commit") {
    for (const std::uint64_t room : {0u, 1'000u, 20'000u, 40'000u, 90'000u}) {
        SimDisk disk;
        auto store = Store::open(disk, forest, options(), nullptr);
        REQUIRE(store);
        REQUIRE((*store)->commit({turn(900)}).answer == Answer::done);
        disk.set_capacity(disk.used_bytes() + room);
        disk.after_operation = [&] {
            for (const auto &[path, bytes] : disk.files("turns")) {
                if (path != root_name((*store)->turn() + 1)) continue;
                disk.set_capacity(disk.used_bytes());
                disk.after_operation = nullptr;
                return;
            }
        };
        const CommitResult result = (*store)->commit({turn(950)}, Room::reserve);
        INFO(room << ": " << result.status.text);
        CHECK(result.answer == Answer::done);
        CHECK(*disk.size("g/1/params") == 950);
    }
}

TEST_CASE("what the reserve gave up is taken before the root is written: more is given, or it is refused") {
    SimDisk disk;
    auto store = Store::open(disk, forest, options(), nullptr);
    REQUIRE(store);
    REQUIRE((*store)->commit({turn(900)}).answer == Answer::done);
    REQUIRE((*store)->flush().answer == Answer::done);
    disk.set_capacity(disk.used_bytes());
    int thefts = 0;
    std::uint64_t before = reserve;
    disk.after_operation = [&] {
        const auto now = disk.size("reserve");
        const std::uint64_t left = now ? *now : 0;
        if (left < before && thefts < 2) {
            ++thefts;
            disk.set_capacity(disk.used_bytes());
        }
        before = left;
    };
    const CommitResult result = (*store)->commit({turn(950)}, Room::reserve);
    INFO(result.status.text);
    CHECK(thefts == 2);
    CHECK(result.answer == Answer::done);
    CHECK(*disk.size("g/1/params") == 950);
}

TEST_CASE("a turn for which the reserve is too small is refused, and the reserve stays") {
    SimDisk disk;
    auto store = Store::open(disk, forest, options(), nullptr);
    REQUIRE(store);
    disk.set_capacity(disk.used_bytes());
    const CommitResult result = (*store)->commit({turn(150'000)}, Room::reserve);
    CHECK(result.answer == Answer::nothing);
    CHECK(result.status.code == Code::no_space);
    CHECK(*disk.size("reserve") == reserve);
    CHECK((*store)->commit({turn(900)}, Room::reserve).answer == Answer::done);
}

TEST_CASE("a disk that fills byte by byte never breaks a turn") {
    for (std::uint64_t room = 0; room < 120'000; room += 1'777) {
        SimDisk disk;
        auto store = Store::open(disk, forest, options(), nullptr);
        REQUIRE(store);
        disk.set_capacity(disk.used_bytes() + room);
        std::uint64_t length = 0;
        for (int i = 0; i < 30; ++i) {
            TreeUpdate update{"g/1", "grain", {{"out", std::string(1'500, 'o'), length}, {"status", "s", 0}}, false};
            const CommitResult result = (*store)->commit({update});
            if (result.answer == Answer::done) length += 1'500;
            else REQUIRE(result.answer == Answer::nothing);
        }
        SimDisk after = disk.crashed();
        auto again = Store::open(after, forest, options(), nullptr);
        REQUIRE(again);
        const auto out = (*again)->read("g/1/out", 0, 1 << 20);
        CHECK((out ? out->size() : 0) == length);
    }
}

}  // namespace dcs::store
