// Barriers, orders and checks of the store that a flag leaves out must be missed here, too, by the
// real turns of the scheduler, or this enumerator proves less than it says.
#include "crash/scheduler/enumerator.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

using namespace store;

constexpr const char *barriers[] = {
    "no_sync_temp",           "no_sync_temp_dir",
    "no_sync_root",           "no_sync_commit",
    "no_sync_applied_trees",  "no_sync_applied_stamp",
    "append_at_end",          "no_flush_before_big",
    "reverse_replay",         "no_sync_new_dirs",
    "no_flush_before_remove", "no_flush_before_shrink",
    "drop_temps_early",       "move_big",
    "trust_visible_roots",    "trust_visible_dirs",
    "ignore_failed_sync",     "keep_strays",
};

}  // namespace

TEST_CASE("planted bugs of the store are caught by turns of the scheduler") {
    for (const char *const planted : barriers) {
        std::uint64_t states = 0, bad = 0;
        std::string first_bad;
        for (std::uint64_t seed = 0; seed < 60 && bad == 0; ++seed) {
            Effort effort;
            effort.weak = 2;
            effort.journal = 1;
            effort.deep_one_in = 30;
            effort.root_files = planted == std::string_view("trust_visible_roots");
            Enumerator run(seed, effort, planted);
            run.run();
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
