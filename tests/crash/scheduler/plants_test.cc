// Barriers, orders and checks of the store that a flag leaves out must be missed here, too, by the
// real turns of the scheduler, or this enumerator proves less than it says.
#include "crash/scheduler/enumerator.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

using namespace store;

struct Planted {
    Plant bug;
    const char *name;
};

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
    {plant_ignore_failed_sync, "ignore_failed_sync"},
    {plant_keep_strays, "keep_strays"},
};

}  // namespace

TEST_CASE("planted bugs of the store are caught by turns of the scheduler") {
    for (const Planted &planted : barriers) {
        std::uint64_t states = 0, bad = 0;
        std::string first_bad;
        for (std::uint64_t seed = 0; seed < 60 && bad == 0; ++seed) {
            Effort effort;
            effort.weak = 2;
            effort.journal = 1;
            effort.deep_one_in = 30;
            effort.root_files = planted.bug == plant_trust_visible_roots;
            Enumerator run(seed, effort, planted.bug);
            run.run();
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
