#pragma once
// Runs a World, and after every operation on its disk asks: if the machine stopped now, what could
// be on the disk; does a scheduler started on it know exactly what it knew after the last
// acknowledged turn or after the one under way, with every byte; and is everything true that left
// it before? Recoveries are crashed in the same way, and some recovered worlds go on.
#include <cstdint>
#include <string>
#include <unordered_set>

#include "crash/scheduler/world.h"

namespace dcs::test {

struct Effort {
    std::size_t weak = 5, journal = 3;  // states per point and model; all, where there are no more
    std::size_t nested = 3;             // the same for crashes of a recovery, and of a world that goes on
    unsigned nested_one_in = 4;         // how many of their points are looked at
    unsigned kill_one_in = 4;           // at how many points the process is killed alone
    unsigned deep_one_in = 100;         // how many recoveries are crashed in their turn
    unsigned go_on_one_in = 100;        // how many recovered worlds go on
    int steps_before = 40;              // without crashes, so that there is something to lose
    int steps = 50;
    std::uint64_t max_states = ~0ull;
    bool root_files = false;  // each turn in a file of its own, as large ones are, none in the journal
};

class Enumerator {
public:
    // Every third seed begins with a session whose log is about to be renewed.
    Enumerator(std::uint64_t seed, Effort effort, std::string_view plant = {});
    void run();

    std::uint64_t states = 0;  // distinct ones, recovered and compared
    std::uint64_t nested = 0;  // of those: crashes of a recovery or of what followed it
    std::uint64_t generated = 0, points = 0, all_of = 0;
    std::uint64_t replayed = 0;  // recoveries that had two or more turns to apply
    std::uint64_t went_on = 0;   // worlds
    Counts counts;
    std::uint64_t bad = 0;
    std::string first_bad;

private:
    // Where the crash happened: whose world it was, and which turns it may come to.
    struct Moment {
        const World *world;
        SnapshotPtr low, high;
    };
    void point(const SimDisk &disk, const Moment &moment, int depth);
    void check(SimDisk &state, const Moment &moment, int depth, bool deep, const char *how);
    std::string recover(SimDisk &state, const Moment &moment, int depth, bool deep, SnapshotPtr &found);
    void go_on(SimDisk &state, const Moment &moment, const SnapshotPtr &found, int depth);
    void wrong(const std::string &what);
    void take(const World &world);
    bool enough() const { return bad > 0 || states >= effort_.max_states; }

    const bool long_log_;
    store::StoreOptions options_;
    const Effort effort_;
    Random random_;
    const std::uint64_t seed_;
    std::unordered_set<std::uint64_t> seen_;
};

// Small limits, drawn, so that few operations show every rule at work.
store::StoreOptions small_limits(std::uint64_t seed, bool long_log);

}  // namespace dcs::test
