// What happens with trees that are set aside, with roots that cannot be read at all, and with the
// store's own small files.
#include "crash/store/damage.h"
#include "crash/store/enumerator.h"
#include "store/names.h"
#include "store/stamp.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

using namespace store;

StoreOptions unflushed() {
    StoreOptions options = small_options(3);  // everything inside the roots
    options.journal_bytes = 0;
    options.behind_turns = 0;
    options.flush_turns = 1000;
    options.layout.twice_limit = 0;
    return options;
}

// The first turns of the workload committed, nothing flushed but what the store flushes by itself.
SimDisk pending_store(const StoreOptions &options, const Workload &workload, std::size_t turns) {
    SimDisk disk(16);
    auto opened = Store::open(disk, test_forest(), options, nullptr);
    REQUIRE(opened);
    for (std::size_t i = 0; i < turns; ++i)
        REQUIRE((*opened)->commit(workload.turns[i].updates).answer == Answer::done);
    return disk.killed();
}

// Both heads, or one.
void spoil_heads(SimDisk &disk, std::uint64_t turn) {
    const std::string root = root_name(turn);
    disk.flip(root, 20, 1);
    disk.flip(root, disk.files().at(root).size() - 1, 1);
}
void spoil_bytes(SimDisk &disk, std::uint64_t turn, const std::string &of) {
    const std::size_t at = disk.files().at(root_name(turn)).find(of);
    REQUIRE(at != std::string::npos);
    disk.flip(root_name(turn), at, 4);
}

std::string error_of(SimDisk &disk, const StoreOptions &options) {
    auto opened = Store::open(disk, test_forest(), options, nullptr);
    REQUIRE_FALSE(opened);
    return opened.status().text;
}

const std::string ann = "sessions/ann/1";

bool says(const RecoveryReport &report, const std::string &path, const std::string &what) {
    for (const Damage &damage : report.damaged)
        if (damage.path == path && damage.what.find(what) != std::string::npos) return true;
    return false;
}

}  // namespace

TEST_CASE("a root without a readable head is refused, nothing has changed, and a repaired one opens") {
    const Workload workload = written_workload();
    SimDisk disk = pending_store(unflushed(), workload, 3);
    spoil_heads(disk, 2);
    const Files before = disk.files();
    const std::string text = error_of(disk, unflushed());
    CHECK(text.find(root_name(2)) != std::string::npos);
    CHECK(text.find("restore") != std::string::npos);
    CHECK(disk.files() == before);
    StoreOptions other = unflushed();
    other.accept_lost_turn = 3;  // not the one
    error_of(disk, other);
    CHECK(disk.files() == before);
    spoil_heads(disk, 2);
    REQUIRE(Store::open(disk, test_forest(), unflushed(), nullptr));
    CHECK(trees_of(disk) == workload.states[3]);
}

TEST_CASE("a lost turn that is accepted is kept aside, and replay goes on behind it") {
    const std::vector<TreeUpdate> turns[] = {
        {{ann, "session", {{"grains", "one,", 0}, {"status", "1", 0}}, false},
         {"auth", "auth", {{"table", "1", 0}}, false}},
        {{ann, "session", {{"grains", "two,", 4}, {"status", "2", 0}}, false}},
        {{ann, "session", {{"grains", "three,", 8}, {"status", "3", 0}}, false},
         {"auth", "auth", {{"table", "3", 0}}, false}},
    };
    for (const std::uint64_t gone : {1u, 2u, 3u})
        for (const bool missing : {false, true}) {
            SimDisk disk(16);
            {
                auto opened = Store::open(disk, test_forest(), unflushed(), nullptr);
                REQUIRE(opened);
                for (const auto &turn : turns) REQUIRE((*opened)->commit(turn).answer == Answer::done);
            }
            disk = disk.crashed();               // nothing of the trees was durable
            if (missing && gone == 3) continue;  // no caller can know
            if (missing) REQUIRE(disk.remove(root_name(gone)));
            else spoil_heads(disk, gone);
            error_of(disk, unflushed());
            StoreOptions accepting = unflushed();
            accepting.accept_lost_turn = gone;
            const Files before = disk.files();
            std::uint64_t crashes = 0;
            disk.after_operation = [&] {
                // Once the root has its other name, a start without the permission goes on, too.
                SimDisk killed = disk.killed();
                const bool renamed = killed.files().count(lost_name(gone)) > 0;
                const bool stamped = killed.files().at(applied_file) != before.at(applied_file);
                auto again = Store::open(killed, test_forest(), unflushed(), nullptr);
                CHECK(bool(again) == (renamed || stamped));
                if (again) CHECK((*again)->turn() == 3);
                ++crashes;
            };
            RecoveryReport report;
            auto opened = Store::open(disk, test_forest(), accepting, &report);
            disk.after_operation = nullptr;
            REQUIRE(opened);
            CHECK(crashes > 5);
            CHECK((*opened)->turn() == 3);
            CHECK(says(report, root_name(gone), missing ? "lost" : "given up"));
            CHECK(disk.files().count(lost_name(gone)) == (missing ? 0 : 1));
            // The tree whose bytes are missing in the middle is set aside, the other one is right.
            CHECK(says(report, ann, "were recorded") == (gone < 3));
            CHECK(disk.files().count(marker_of(ann)) == (gone < 3 ? 1 : 0));
            CHECK(*(*opened)->read("auth/table", 0, 9) == (gone == 3 ? "1" : "3"));
            REQUIRE((*opened)->commit({{"auth", "auth", {{"table", "4", 0}}, false}}).answer == Answer::done);
            SimDisk later = disk.crashed();
            auto again = Store::open(later, test_forest(), unflushed(), nullptr);
            REQUIRE(again);
            CHECK((*again)->turn() == 4);
            CHECK(*(*again)->read("auth/table", 0, 9) == "4");
        }
}

TEST_CASE("a missing root is refused, and so is one of another turn") {
    const Workload workload = written_workload();
    const SimDisk disk = pending_store(unflushed(), workload, 3);
    SimDisk gap = disk.killed();
    REQUIRE(gap.remove(root_name(2)));
    CHECK(error_of(gap, unflushed()).find(root_name(2)) != std::string::npos);
    SimDisk other = disk.killed();
    REQUIRE(other.remove(root_name(2)));
    REQUIRE(other.create(root_name(2), disk.files().at(root_name(3))));
    CHECK(error_of(other, unflushed()).find("another turn") != std::string::npos);
}

TEST_CASE("a tree that is set aside: named, left alone, and at an end with its removal") {
    const Workload workload = written_workload();
    SimDisk disk = pending_store(unflushed(), workload, 2);
    spoil_bytes(disk, 2, workload.states[2].at(ann + "/g/4/params"));
    RecoveryReport report;
    auto opened = Store::open(disk, test_forest(), unflushed(), &report);
    REQUIRE(opened);
    const std::string grain = ann + "/g/4";
    REQUIRE(report.damaged.size() == 1);
    CHECK(says(report, grain, "in turn 2 the bytes of params in " + root_name(2) + " are damaged"));
    const auto names = (*opened)->list(grain);
    REQUIRE(names);
    CHECK(std::count(names->begin(), names->end(), "DAMAGED") == 1);
    const auto text = (*opened)->read(marker_of(grain), 0, 1000);
    REQUIRE(text);
    CHECK(text->find("turn 2") != std::string::npos);
    // Its session, the directory above, is right and goes on.
    CHECK(*(*opened)->read(ann + "/status", 0, 100) == workload.states[2].at(ann + "/status"));

    const auto refused = (*opened)->commit(
        {{grain, "grain", {{"status", "x", 0}}, false}, {"auth", "auth", {{"table", "with it", 0}}, false}});
    CHECK(refused.answer == Answer::nothing);
    CHECK(refused.status.code == Code::io_error);
    CHECK(refused.status.text.find(grain) != std::string::npos);
    CHECK(refused.status.text.find("remove the tree") != std::string::npos);
    CHECK((*opened)->turn() == 2);
    REQUIRE((*opened)->commit({{"auth", "auth", {{"table", "without", 0}}, false}}).answer == Answer::done);

    // The next start says it again.
    RecoveryReport again;
    SimDisk later = disk.crashed();
    opened = Store::open(later, test_forest(), unflushed(), &again);
    REQUIRE(opened);
    CHECK(says(again, grain, "earlier start"));
    CHECK((*opened)->commit({{grain, "grain", {{"status", "x", 0}}, false}}).answer == Answer::nothing);

    // Removed and begun again, in one turn or in two.
    const std::vector<TreeUpdate> removal{{grain, "grain", {}, true}};
    const std::vector<TreeUpdate> anew{{grain, "grain", {{"status", "n", 0}}, false}};
    SimDisk other = later.killed();
    REQUIRE((*opened)->commit({removal[0], anew[0]}).answer == Answer::done);
    CHECK(*(*opened)->list(grain) == std::vector<std::string>{"status"});
    auto second = Store::open(other, test_forest(), unflushed(), nullptr);
    REQUIRE(second);
    REQUIRE((*second)->commit(removal).answer == Answer::done);
    REQUIRE((*second)->commit(anew).answer == Answer::done);
    for (SimDisk *state : {&later, &other})
        for (SimDisk end : {state->killed(), state->crashed()}) {
            RecoveryReport clean;
            auto last = Store::open(end, test_forest(), unflushed(), &clean);
            REQUIRE(last);
            CHECK(clean.damaged.empty());
            CHECK(*(*last)->list(grain) == std::vector<std::string>{"status"});
        }
}

TEST_CASE("the planted bug commit_to_damaged is caught") {
    const Workload workload = written_workload();
    SimDisk disk = pending_store(unflushed(), workload, 2);
    spoil_bytes(disk, 2, workload.states[2].at(ann + "/g/4/params"));
    StoreOptions options = unflushed();
    options.plant = "commit_to_damaged";
    auto opened = Store::open(disk, test_forest(), options, nullptr);
    REQUIRE(opened);
    CHECK((*opened)->commit({{ann + "/g/4", "grain", {{"status", "x", 0}}, false}}).answer == Answer::done);
}

TEST_CASE("replay leaves a damaged tree as it was found, and the planted bug apply_to_damaged is caught") {
    for (const bool planted : {false, true}) {
        StoreOptions options = unflushed();
        SimDisk disk(16);
        auto opened = Store::open(disk, test_forest(), options, nullptr);
        REQUIRE(opened);
        const auto turn = [](const char *file, const char *bytes) {
            return std::vector<TreeUpdate>{{ann + "/g/4", "grain", {{file, bytes, 0}}, false}};
        };
        for (const auto &updates : {turn("params", "first"), turn("status", "second"), turn("message", "third")})
            REQUIRE((*opened)->commit(updates).answer == Answer::done);
        disk = disk.crashed();
        spoil_bytes(disk, 2, "second");
        if (planted) options.plant = "apply_to_damaged";
        REQUIRE(Store::open(disk, test_forest(), options, nullptr));
        const Files files = disk.files(ann);
        CHECK(files.at(ann + "/g/4/params") == "first");
        CHECK(files.count(ann + "/g/4/DAMAGED") == 1);
        CHECK(files.count(ann + "/g/4/status") == 0);
        CHECK(files.count(ann + "/g/4/message") == (planted ? 1 : 0));
    }
}

TEST_CASE("a file that lost bytes costs its tree and the rest runs on") {
    const Workload workload = written_workload();
    StoreOptions options = unflushed();
    SimDisk disk = pending_store(options, workload, 1);
    {
        auto opened = Store::open(disk, test_forest(), options, nullptr);  // flushes turn 1
        REQUIRE(opened);
        REQUIRE((*opened)->commit(workload.turns[1].updates).answer == Answer::done);
    }
    disk.cut(ann + "/grains", 4);
    RecoveryReport report;
    auto opened = Store::open(disk, test_forest(), options, &report);
    REQUIRE(opened);
    REQUIRE(report.damaged.size() == 1);
    CHECK(says(report, ann, ann + "/grains has 4 bytes, but 10 were recorded"));
    Files rest = trees_of(disk), expected = workload.states[2];
    CHECK(leave_out(rest, {ann}));
    expected[marker_of(ann)];
    CHECK(leave_out(expected, {ann}));
    CHECK(rest == expected);
}

TEST_CASE("an append whose file lost bytes is refused before anything is written") {
    const Workload workload = written_workload();
    StoreOptions options = small_options(0);
    options.flush_turns = 1;
    SimDisk disk(16);
    auto opened = Store::open(disk, test_forest(), options, nullptr);
    REQUIRE(opened);
    REQUIRE((*opened)->commit(workload.turns[0].updates).answer == Answer::done);
    disk.cut("sessions/ann/1/grains", 4);
    const auto result = (*opened)->commit(workload.turns[1].updates);
    CHECK(result.answer == Answer::nothing);
    CHECK(result.status.code == Code::io_error);
    CHECK(result.status.text.find("sessions/ann/1/grains") != std::string::npos);
    CHECK((*opened)->turn() == 1);
}

TEST_CASE("both stamps lost: fatal while a turn waits, otherwise a report and higher numbers") {
    const Workload workload = written_workload();
    SimDisk disk = pending_store(unflushed(), workload, 3);
    const auto spoil = [](SimDisk &d) { d.damage(applied_file, 0, 1 << 20, [](char) { return '\0'; }); };
    {
        SimDisk waiting = disk.killed();
        spoil(waiting);
        const Files before = waiting.files();
        const std::string text = error_of(waiting, unflushed());
        CHECK(text.find(applied_file) != std::string::npos);
        CHECK(text.find("restore") != std::string::npos);
        CHECK(waiting.files() == before);
    }
    REQUIRE(Store::open(disk, test_forest(), unflushed(), nullptr));  // nothing waits any more
    for (const bool missing : {false, true}) {
        SimDisk idle = disk.killed();
        if (missing) REQUIRE(idle.remove(applied_file));
        else spoil(idle);
        REQUIRE(idle.create(root_temporary(17), "half"));
        REQUIRE(idle.create(big_temporary("auth", "table", 23), "half"));
        RecoveryReport report;
        auto opened = Store::open(idle, test_forest(), unflushed(), &report);
        REQUIRE(opened);
        REQUIRE(report.damaged.size() == 1);
        CHECK(report.damaged[0].path == applied_file);
        CHECK((*opened)->turn() == 23);
        CHECK(trees_of(idle) == workload.states[3]);
        REQUIRE((*opened)->commit({{"auth", "auth", {{"table", "on", 0}}, false}}).answer == Answer::done);
        SimDisk later = idle.crashed();
        opened = Store::open(later, test_forest(), unflushed(), nullptr);
        REQUIRE(opened);
        CHECK((*opened)->turn() == 24);
        CHECK(*(*opened)->read("auth/table", 0, 9) == "on");
    }
}

TEST_CASE("a format file that says nothing is written again if the stamp is ours, one that says more is refused") {
    const Workload workload = written_workload();
    const SimDisk disk = pending_store(unflushed(), workload, 3);
    SimDisk zeroed = disk.killed();
    zeroed.damage(format_file, 0, 1 << 20, [](char) { return '\0'; });
    SimDisk neither = zeroed.killed();
    neither.damage(applied_file, 0, 1 << 20, [](char) { return '\0'; });
    RecoveryReport report;
    REQUIRE(Store::open(zeroed, test_forest(), unflushed(), &report));
    CHECK(says(report, format_file, "rewritten"));
    CHECK(decode_format(zeroed.crashed().files().at(format_file)) == Format::good);
    CHECK(trees_of(zeroed) == workload.states[3]);
    CHECK(error_of(neither, unflushed()).find("neither") != std::string::npos);

    SimDisk foreign = disk.killed();
    foreign.cut(format_file, 0);
    REQUIRE(foreign.truncate_append(format_file, 0, "dcs backing store 4\n"));
    const Files before = foreign.files();
    CHECK(error_of(foreign, unflushed()).find("`dcs backing store 3`") != std::string::npos);
    CHECK(foreign.files() == before);
}

}  // namespace dcs::test
