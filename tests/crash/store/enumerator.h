#pragma once
// Runs the real store on the simulated disk, and after every operation asks: if the machine stopped
// now, what could be on the disk, and does recovery make exactly some turn k of it, with
// acknowledged <= k <= started? Recovery itself is crashed in the same way.
#include <cstdint>
#include <set>
#include <string>
#include <unordered_set>

#include "crash/store/workload.h"

namespace dcs::test {

struct Effort {
    std::size_t weak = 60;  // states per point and model, at the outer level
    std::size_t journal = 25;
    std::size_t nested = 6;      // the same for crashes of a recovery
    unsigned nested_one_in = 2;  // how many points of a recovery are looked at
    unsigned deep_one_in = 400;  // how many recoveries are crashed in their turn
    bool stop_at_first = false;  // bad state
    std::uint64_t max_states = ~0ull;
};

class Enumerator {
public:
    Enumerator(const Workload &workload, store::StoreOptions options, Effort effort, std::uint64_t seed)
        : workload_(workload), options_(options), effort_(effort), random_(seed) {}
    // `creation`: the crashes while the empty store is made, too.
    void run(bool creation);
    // Recovery of a disk with committed turns up to `turn` and with damage that costs these trees.
    void run_damaged(const SimDisk &image, std::size_t turn, const std::set<std::string> &set_aside);

    std::uint64_t states = 0;              // distinct ones, recovered and compared
    std::uint64_t nested = 0;              // of those: crashes of a recovery
    std::uint64_t generated = 0;           // with doubles
    std::uint64_t points = 0, all_of = 0;  // points; points of which every state was tried
    std::uint64_t reserve_commits = 0;
    std::uint64_t bad = 0;
    std::string first_bad;

private:
    void point(const SimDisk &disk, std::size_t low, std::size_t high, int depth);
    void check(SimDisk &state, std::size_t low, std::size_t high, int depth, bool deep, const char *how);
    bool commit(SimDisk &disk, store::Store &store, const Workload::Turn &turn);
    void go_on(SimDisk &state, store::Store &store, int depth);
    void wrong(const std::string &what);
    bool enough() const { return (effort_.stop_at_first && bad > 0) || states >= effort_.max_states; }

    const Workload &workload_;
    const store::StoreOptions options_;
    const Effort effort_;
    Random random_;
    bool damaged_ = false;
    std::set<std::string> set_aside_;
    std::unordered_set<std::uint64_t> seen_;
};

// Small everything, so that few operations show every rule at work. `variant` turns the limits.
store::StoreOptions small_options(unsigned variant);

}  // namespace dcs::test
