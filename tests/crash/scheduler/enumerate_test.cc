#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "crash/scheduler/enumerator.h"
#include "scheduler/record/paths.h"
#include "store/identity.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

constexpr std::uint64_t usual_states = 40'000;

// DCS_CRASH_STATES=N is what the store's enumerator tries instead of its 210,000; this one grows by
// the same factor, because its states cost more.
std::uint64_t wanted_states() {
    const char *text = std::getenv("DCS_CRASH_STATES");
    if (!text) return usual_states;
    return std::max<std::uint64_t>(std::strtoull(text, nullptr, 10) / 21 * 4, usual_states);
}

struct Total {
    std::uint64_t states = 0, nested = 0, generated = 0, points = 0, all_of = 0, replayed = 0, went_on = 0,
                  workloads = 0, bad = 0;
    Counts counts;
    void add(const Enumerator &run) {
        states += run.states;
        nested += run.nested;
        generated += run.generated;
        points += run.points;
        all_of += run.all_of;
        replayed += run.replayed;
        went_on += run.went_on;
        bad += run.bad;
        counts.add(run.counts);
        ++workloads;
    }
};

// Every one of them must have happened, unless a single workload was asked for.
void show_and_check(const Total &total, double seconds) {
    const Counts &c = total.counts;
    std::vector<std::pair<std::string, std::uint64_t>> all = {{"distinct states", total.states},
                                                              {"of them nested", total.nested},
                                                              {"points", total.points},
                                                              {"points exhausted", total.all_of},
                                                              {"recoveries of two turns and more", total.replayed},
                                                              {"worlds that went on", total.went_on},
                                                              {"workloads", total.workloads},
                                                              {"turns", c.turns},
                                                              {"flushes", c.flushes},
                                                              {"logs renewed", c.compactions},
                                                              {"own trees", c.own_trees},
                                                              {"sessions removed", c.removed},
                                                              {"big nodes", c.big_nodes},
                                                              {"inputs during a commit", c.in_flight},
                                                              {"turns refused", c.refused},
                                                              {"turns in doubt", c.doubts},
                                                              {"restarts", c.restarts},
                                                              {"launches", c.launches},
                                                              {"results handed out", c.results},
                                                              {"grains killed", c.kills},
                                                              {"grains packed", c.packed},
                                                              {"results together", c.batches},
                                                              {"commits with the reserve", c.with_reserve},
                                                              {"reports handed over", c.handed_over}};
    for (const store::TreeTemplate &tree : record::forest()) {
        // That one changes before a scheduler serves, and when a copy is promoted: crash/mirror.
        if (tree.name == store::identity_tree().name) continue;
        const auto found = c.trees.find(tree.name);
        all.emplace_back("updates of " + tree.name + " trees", found == c.trees.end() ? 0 : found->second);
    }
    std::printf("scheduler crash states in %.1f s, %.0f per second, %llu generated:", seconds,
                static_cast<double>(total.states) / seconds, static_cast<unsigned long long>(total.generated));
    for (const auto &[name, n] : all) std::printf(" %s %llu,", name.c_str(), static_cast<unsigned long long>(n));
    std::printf(" bad %llu\n", static_cast<unsigned long long>(total.bad));
    for (const auto &[name, n] : all) {
        INFO(name);
        CHECK((n > 0 || total.workloads == 1));
    }
}

}  // namespace

TEST_CASE("whatever a crash leaves, the scheduler knows a whole turn and keeps its word") {
    const auto start = std::chrono::steady_clock::now();
    const char *chosen = std::getenv("DCS_SEED");
    const std::uint64_t wanted = wanted_states();
    Total total;
    for (std::uint64_t seed = 0; total.states < wanted && total.bad == 0; ++seed) {
        const std::uint64_t used = chosen ? std::strtoull(chosen, nullptr, 10) : seed;
        Effort effort;
        effort.max_states = wanted - total.states;
        Enumerator run(used, effort);
        run.run();
        total.add(run);
        INFO("DCS_SEED=" << used << ": " << run.first_bad);
        CHECK(run.bad == 0);
        if (chosen) break;
    }
    show_and_check(total, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    CHECK((chosen || total.states >= wanted));
}

}  // namespace dcs::test
