// Every barrier, order and check of the store has a flag that leaves it out. The enumerator must
// notice each of them, or it proves nothing.
#include "crash/store/enumerator.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

using namespace store;

// The others need failing syncs (faults_test.cc) or damage (damage_test.cc, damage_blocks_test.cc,
// damage_crash_test.cc).
constexpr const char *barriers[] = {
    "no_sync_temp",
    "no_sync_temp_dir",
    "no_sync_root",
    "no_sync_commit",
    "no_sync_applied_trees",
    "no_sync_applied_stamp",
    "append_at_end",
    "no_flush_before_big",
    "reverse_replay",
    "no_sync_new_dirs",
    "no_flush_before_remove",
    "no_flush_before_shrink",
    "drop_temps_early",
    "move_big",
    "trust_visible_roots",
    "trust_visible_dirs",
    "keep_strays",
    "reserve_for_all",
    "reserve_all_at_once",
    "no_sync_reserve",
    "no_sync_journal",
    "reuse_journal_early",
    "trust_visible_journal",
    "replay_old_turns",
    "no_sync_placed",
    "no_flush_before_placed",
    "forget_behind",
};

}  // namespace

TEST_CASE("every planted bug is caught") {
    for (const char *const planted : barriers) {
        std::uint64_t states = 0, bad = 0;
        std::string first_bad;
        unsigned seed = 0;
        for (; seed < 60 && bad == 0; ++seed) {
            const Workload workload = seed % 2 == 0 ? written_workload() : drawn_workload(seed, 8);
            StoreOptions options = small_options(seed / 2);
            options.plant = planted;
            Effort effort;
            effort.stop_at_first = true;
            effort.weak = 8;
            effort.journal = 4;
            effort.nested = 3;
            effort.deep_one_in = 60;
            Enumerator run(workload, options, effort, seed);
            run.run(false);
            states += run.states;
            bad += run.bad;
            first_bad = run.first_bad;
        }
        std::printf("planted %-24s %s after %6llu states: %s\n", planted, bad ? "caught" : "MISSED",
                    static_cast<unsigned long long>(states), first_bad.c_str());
        INFO(planted);
        CHECK(bad > 0);
    }
}

}  // namespace dcs::test
