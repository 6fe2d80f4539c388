// Every barrier, order and check of the store has a flag that leaves it out. The enumerator must
// notice each of them, or it proves nothing.
#include "crash/store/enumerator.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

using namespace store;

struct Planted {
    Plant bug;
    const char *name;
};

// The others need failing syncs (faults_test.cc) or damage (damage_test.cc, damage_blocks_test.cc,
// damage_crash_test.cc).
constexpr Planted barriers[] = {
    {plant_no_sync_temp, "no_sync_temp"},
    {plant_no_sync_temp_dir, "no_sync_temp_dir"},
    {plant_no_sync_root, "no_sync_root"},
    {plant_no_sync_commit, "no_sync_commit"},
    {plant_no_sync_applied_trees, "no_sync_applied_trees"},
    {plant_no_sync_applied_stamp, "no_sync_applied_stamp"},
    {plant_append_at_end, "append_at_end"},
    {plant_no_flush_before_big, "no_flush_before_big"},
    {plant_reverse_replay, "reverse_replay"},
    {plant_no_sync_new_dirs, "no_sync_new_dirs"},
    {plant_no_flush_before_remove, "no_flush_before_remove"},
    {plant_no_flush_before_shrink, "no_flush_before_shrink"},
    {plant_drop_temps_early, "drop_temps_early"},
    {plant_move_big, "move_big"},
    {plant_trust_visible_roots, "trust_visible_roots"},
    {plant_trust_visible_dirs, "trust_visible_dirs"},
    {plant_keep_strays, "keep_strays"},
    {plant_reserve_for_all, "reserve_for_all"},
    {plant_reserve_all_at_once, "reserve_all_at_once"},
    {plant_no_sync_reserve, "no_sync_reserve"},
    {plant_no_sync_journal, "no_sync_journal"},
    {plant_reuse_journal_early, "reuse_journal_early"},
    {plant_trust_visible_journal, "trust_visible_journal"},
    {plant_replay_old_turns, "replay_old_turns"},
    {plant_forget_behind, "forget_behind"},
};

}  // namespace

TEST_CASE("every planted bug is caught") {
    for (const Planted &planted : barriers) {
        std::uint64_t states = 0, bad = 0;
        std::string first_bad;
        unsigned seed = 0;
        for (; seed < 60 && bad == 0; ++seed) {
            const Workload workload = seed % 2 == 0 ? written_workload() : drawn_workload(seed, 8);
            StoreOptions options = small_options(seed / 2);
            options.plant = planted.bug;
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
        std::printf("planted %-24s %s after %6llu states: %s\n", planted.name, bad ? "caught" : "MISSED",
                    static_cast<unsigned long long>(states), first_bad.c_str());
        INFO(planted.name);
        CHECK(bad > 0);
    }
}

}  // namespace dcs::test
