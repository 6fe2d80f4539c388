// The crash model itself: what may be lost, what may not.
#include "support/sim_disk.h"

#include <set>

#include "support/catch.h"

namespace dcs::test {
namespace {

// All crash states as one text each.
std::set<std::string> states(const SimDisk &disk, CrashModel model) {
    std::set<std::string> all;
    const bool complete = disk.each_crash(
        model, 100'000, 1, [](std::uint64_t) { return true; },
        [&](SimDisk &state) {
            std::string text;
            for (const auto &[path, bytes] : state.files()) text += path + "=" + bytes + ";";
            all.insert(text);
        });
    CHECK(complete);
    return all;
}

using Set = std::set<std::string>;

}  // namespace

TEST_CASE("a new file: name and content are lost independently") {
    SimDisk disk;
    REQUIRE(disk.create("f", "ab"));
    const std::string zeros("\0\0", 2);
    CHECK(states(disk, CrashModel::weak) == Set{"", "f=;", "f=ab;", "f=" + zeros + ";", "f=ZZ;"});
    REQUIRE(disk.sync_file("f"));
    CHECK(states(disk, CrashModel::weak) == Set{"", "f=ab;"});
    REQUIRE(disk.sync_dir(""));
    CHECK(states(disk, CrashModel::weak) == Set{"f=ab;"});
}

TEST_CASE("a name without its content, after syncing the directory only") {
    SimDisk disk;
    REQUIRE(disk.create("f", "a"));
    REQUIRE(disk.sync_dir(""));
    CHECK(states(disk, CrashModel::weak).count("f=;") == 1);
    CHECK(states(disk, CrashModel::weak).count("") == 0);
    CHECK(disk.crashed().files().at("f").empty());
}

TEST_CASE("a rename: both names, none, or one in the weak model, in order in the journal") {
    SimDisk disk;
    REQUIRE(disk.create("f", "a"));
    REQUIRE(disk.sync_all());
    REQUIRE(disk.rename("f", "g"));
    CHECK(states(disk, CrashModel::weak) == Set{"", "f=a;", "g=a;", "f=a;g=a;"});
    CHECK(states(disk, CrashModel::journal) == Set{"f=a;", "g=a;"});
    REQUIRE(disk.create("h", ""));
    CHECK(states(disk, CrashModel::journal) == Set{"f=a;", "g=a;", "g=a;h=;"});
}

TEST_CASE("cut and append, torn at blocks") {
    SimDisk disk(4);
    REQUIRE(disk.create("f", "abcdef"));
    REQUIRE(disk.sync_all());
    REQUIRE(disk.truncate_append("f", 2, "XY1234"));
    const Set all = states(disk, CrashModel::weak);
    for (const char *text : {"f=abcdef;", "f=ab;", "f=abXY1234;", "f=abXY;", "f=abXYef;"}) {
        INFO(text);
        CHECK(all.count(text) == 1);
    }
    for (const std::string &text : all) CHECK(text.substr(0, 4) == "f=ab");
}

TEST_CASE("a directory that is not durable takes its files along") {
    SimDisk disk;
    REQUIRE(disk.make_dir("d"));
    REQUIRE(disk.create("d/f", "a"));
    REQUIRE(disk.sync_file("d/f"));
    REQUIRE(disk.sync_dir("d"));
    CHECK(states(disk, CrashModel::weak) == Set{"", "d/f=a;"});
    REQUIRE(disk.sync_dir(""));
    CHECK(states(disk, CrashModel::weak) == Set{"d/f=a;"});
}

TEST_CASE("after a failed sync the cache shows what will never be durable") {
    SimDisk disk;
    REQUIRE(disk.create("f", "ab"));
    REQUIRE(disk.sync_all());
    REQUIRE(disk.truncate_append("f", 2, "cd"));
    disk.fail_syncs(true);
    CHECK_FALSE(disk.sync_file("f"));
    disk.fail_syncs(false);
    CHECK(disk.sync_file("f"));
    CHECK(*disk.read("f", 0, 9) == "abcd");
    CHECK(disk.crashed().files().at("f") == std::string("ab\0\0", 4));
    REQUIRE(disk.truncate_append("f", 2, "cd"));  // written again it can be synced again
    CHECK(disk.sync_file("f"));
    CHECK(disk.crashed().files().at("f") == "abcd");
}

TEST_CASE("snapshots do not see what happens later") {
    SimDisk disk;
    REQUIRE(disk.create("f", "old"));
    const SimDisk then = disk.killed();
    REQUIRE(disk.truncate_append("f", 0, "newer"));
    CHECK(then.files().at("f") == "old");
    CHECK(disk.files().at("f") == "newer");
}

TEST_CASE("faults come at the call that was asked for") {
    SimDisk disk;
    disk.fail_at(2, Fault::short_write, false);
    CHECK(disk.create("a", "1234"));
    CHECK(disk.create("b", "1234").code == Code::no_space);
    CHECK(disk.files().at("b") == "12");
    CHECK(disk.create("c", "1234"));
    disk.fail_at(1, Fault::limit, true);
    CHECK(disk.remove("a").code == Code::limit);
    CHECK(disk.free_bytes().status().code == Code::limit);
    CHECK(disk.faults_hit() == 2);
    disk.fail_at(1, Fault::io_error_done, false);
    CHECK(disk.remove("a").code == Code::io_error);
    CHECK(disk.files().count("a") == 0);
    disk.clear_faults();
    disk.set_capacity(8);
    CHECK(disk.create("d", "123").code == Code::no_space);
    CHECK(*disk.free_bytes() == 0);
    CHECK(disk.files().at("d") == "12");
}

}  // namespace dcs::test
