#pragma once
// Turns for the crash tests, and what the trees must look like after each of them.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "store/store.h"
#include "support/sim_disk.h"

namespace dcs::test {

// The shapes of the scheduler's trees, and singletons besides.
const store::Forest &test_forest();

using Files = std::map<std::string, std::string>;

struct Workload {
    struct Turn {
        std::vector<store::TreeUpdate> updates;
        bool flush_after = false;
        bool full_disk = false;  // there is room only in the reserve
    };
    std::string name;
    std::vector<Turn> turns;
    std::vector<Files> states;  // [k]: after k turns
};

// Every combination that is known to be dangerous, in a few turns.
Workload written_workload();
Workload drawn_workload(std::uint64_t seed, std::size_t turns);

void apply_to_model(Files &files, const store::TreeUpdate &update);

// Without the files of trees that are set aside. False if one of those has no marker.
bool leave_out(Files &files, const std::set<std::string> &set_aside);

// Without the slot of each tree that its root does not name: what is in there means nothing.
Files without_spares(Files files);

// What a disk shows of trees: everything but the store's own files.
Files trees_of(const SimDisk &disk);

}  // namespace dcs::test
