// B8: a full disk refuses, loses nothing, and serves again when there is room.
#include "store/names.h"
#include "store/store.h"
#include "support/catch.h"
#include "support/sim_disk.h"

namespace dcs::store {
namespace {

using test::SimDisk;

const Forest forest{{"grain",
                     {{{"out", Shape::pair, Action::append, ""}},
                      {{"params", Shape::pair, Action::replace, ""}}},
                     {"status", Shape::pair, Action::replace, ""}}};

constexpr std::size_t reserve = 200'000;

StoreOptions options() {
    StoreOptions o;
    o.inline_limit = 1000;
    o.reserve_bytes = reserve;
    return o;
}

TreeUpdate turn(std::size_t bytes) {
    return TreeUpdate{
        "g/1", "grain", {{"params", std::string(bytes, 'p'), 0}, {"status", "s", 0}}, false};
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
    // Somebody else takes all that is left at the moment of the commit.
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
    REQUIRE(disk.remove("reserve"));  // all of it, and the rest of the disk is somebody else's
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
        for (int i = 0; i < 5; ++i)
            REQUIRE((*store)->commit({turn(5'000)}).answer == Answer::done);
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

TEST_CASE("a disk that fills byte by byte never breaks a turn") {
    for (std::uint64_t room = 0; room < 120'000; room += 1'777) {
        SimDisk disk;
        auto store = Store::open(disk, forest, options(), nullptr);
        REQUIRE(store);
        disk.set_capacity(disk.used_bytes() + room);
        std::uint64_t length = 0;
        for (int i = 0; i < 30; ++i) {
            TreeUpdate update{"g/1",
                              "grain",
                              {{"out", std::string(1'500, 'o'), length}, {"status", "s", 0}},
                              false};
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
