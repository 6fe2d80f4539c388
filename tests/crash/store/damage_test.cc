// Damage on the medium: what was committed must verify or be refused by name, never be believed.
#include "crash/store/enumerator.h"
#include "store/names.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

using namespace store;

// Two big and some small nodes committed, nothing flushed.
SimDisk pending_store(const StoreOptions &options, const Workload &workload, std::size_t turns) {
    SimDisk disk(16);
    auto opened = Store::open(disk, test_forest(), options, nullptr);
    REQUIRE(opened);
    for (std::size_t i = 0; i < turns; ++i)
        REQUIRE((*opened)->commit(workload.turns[i].updates).answer == Answer::done);
    return disk.killed();
}

StoreOptions unflushed() {
    StoreOptions options = small_options(0);
    options.flush_turns = 1000;
    return options;
}

struct Verdict {
    std::uint64_t tried = 0, accepted = 0, believed = 0;
    std::string unnamed;  // a refusal that does not say which file
};

void flip_everywhere(const SimDisk &disk, const StoreOptions &options, const Workload &workload,
                     std::size_t turn, const std::string &path, Verdict &verdict) {
    const std::size_t size = disk.files().at(path).size();
    for (std::size_t at = 0; at < size; ++at) {
        SimDisk damaged = disk.killed();
        damaged.flip(path, at, static_cast<unsigned char>(1u << (at % 8)));
        auto opened = Store::open(damaged, test_forest(), options, nullptr);
        ++verdict.tried;
        if (!opened) {
            if (opened.status().text.find(path) == std::string::npos)
                verdict.unnamed = path + ": " + opened.status().text;
            continue;
        }
        ++verdict.accepted;
        if ((*opened)->turn() != turn || trees_of(damaged) != workload.states[turn])
            ++verdict.believed;
    }
}

Verdict flip_committed(std::uint32_t plant) {
    const Workload workload = written_workload();
    StoreOptions options = unflushed();
    const SimDisk disk = pending_store(options, workload, 3);
    options.plant = plant;
    Verdict verdict;
    for (const auto &[path, bytes] : disk.files()) {
        const bool needed = path.find(".commit") != path.npos || is_temporary(path) ||
                            path == applied_file || path == format_file;
        if (needed) flip_everywhere(disk, options, workload, 3, path, verdict);
    }
    return verdict;
}

}  // namespace

TEST_CASE("a flipped bit in anything that recovery needs is refused, and the file named") {
    const Verdict verdict = flip_committed(plant_none);
    std::printf("flipped bits: %llu tried, %llu accepted\n",
                static_cast<unsigned long long>(verdict.tried),
                static_cast<unsigned long long>(verdict.accepted));
    CHECK(verdict.tried > 500);
    CHECK(verdict.accepted == 0);
    CHECK(verdict.unnamed == "");
}

TEST_CASE("the planted bug skip_root_checksum is caught") {
    CHECK(flip_committed(plant_skip_root_checksum).believed > 50);
}

TEST_CASE("a refused open has changed nothing, and a repaired file opens") {
    const Workload workload = written_workload();
    SimDisk disk = pending_store(unflushed(), workload, 3);
    disk.flip(root_name(2), 40, 1);
    const Files before = disk.files();
    REQUIRE_FALSE(Store::open(disk, test_forest(), unflushed(), nullptr));
    CHECK(disk.files() == before);
    disk.flip(root_name(2), 40, 1);
    REQUIRE(Store::open(disk, test_forest(), unflushed(), nullptr));
    CHECK(trees_of(disk) == workload.states[3]);
}

TEST_CASE("roots cut short or missing are refused") {
    const Workload workload = written_workload();
    const SimDisk disk = pending_store(unflushed(), workload, 3);
    for (std::size_t length = 0; length < disk.files().at(root_name(3)).size(); ++length) {
        SimDisk damaged = disk.killed();
        damaged.cut(root_name(3), length);
        REQUIRE_FALSE(Store::open(damaged, test_forest(), unflushed(), nullptr));
    }
    SimDisk gap = disk.killed();
    REQUIRE(gap.remove(root_name(2)));
    auto opened = Store::open(gap, test_forest(), unflushed(), nullptr);
    REQUIRE_FALSE(opened);
    CHECK(opened.status().text.find(root_name(2)) != std::string::npos);
}

TEST_CASE("a file that lost bytes is set aside by name and the rest runs on") {
    const Workload workload = written_workload();
    StoreOptions options = unflushed();
    SimDisk disk = pending_store(options, workload, 1);
    {
        auto opened = Store::open(disk, test_forest(), options, nullptr);  // flushes turn 1
        REQUIRE(opened);
        REQUIRE((*opened)->commit(workload.turns[1].updates).answer == Answer::done);
    }
    disk.cut("sessions/ann/1/grains", 4);
    RecoveryReport report;
    auto opened = Store::open(disk, test_forest(), options, &report);
    REQUIRE(opened);
    REQUIRE(report.damaged == std::vector<std::string>{"sessions/ann/1/grains"});
    CHECK(disk.files().count("damaged/2,sessions,ann,1,grains") == 1);
    CHECK_FALSE((*opened)->read("sessions/ann/1/grains", 0, 100));
    // Everything else is as turn 2 left it.
    Files rest = trees_of(disk), expected = workload.states[2];
    rest.erase("damaged/2,sessions,ann,1,grains");
    expected.erase("sessions/ann/1/grains");
    CHECK(rest == expected);
    const auto top = (*opened)->list("");
    REQUIRE(top);
    CHECK(*top == std::vector<std::string>{"auth/", "sessions/"});
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

}  // namespace dcs::test
