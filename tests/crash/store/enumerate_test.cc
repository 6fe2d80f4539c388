#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "crash/store/enumerator.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

// DCS_CRASH_STATES=N: go on until N states were tried.
std::uint64_t wanted_states() {
    const char *text = std::getenv("DCS_CRASH_STATES");
    return text ? std::max<std::uint64_t>(std::strtoull(text, nullptr, 10), 1) : 210'000;
}

}  // namespace

TEST_CASE("whatever a crash leaves, recovery makes a whole turn of it") {
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t wanted = wanted_states();
    std::uint64_t states = 0, nested = 0, generated = 0, points = 0, all_of = 0, workloads = 0, bad = 0,
                  reserve_commits = 0;
    const Workload written = written_workload();
    for (unsigned seed = 0; states < wanted && bad == 0; ++seed) {
        // The written one under all limits first; then it and new ones in turn.
        const bool use_written = seed < 12 || seed % 8 == 0;
        const Workload workload = use_written ? written : drawn_workload(seed, 8);
        Effort effort;
        effort.max_states = wanted - states;
        Enumerator run(workload, small_options(seed), effort, seed);
        run.run(seed < 2);
        states += run.states;
        nested += run.nested;
        points += run.points;
        all_of += run.all_of;
        bad += run.bad;
        reserve_commits += run.reserve_commits;
        generated += run.generated;
        ++workloads;
        INFO("seed " << seed << ": " << run.first_bad);
        CHECK(run.bad == 0);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf(
        "crash states: %llu made, %llu distinct (%llu of them crashes of a recovery), %llu "
        "workloads, %llu commits into the reserve, "
        "%llu points (%llu exhaustively), %llu bad, %.1f s\n",
        static_cast<unsigned long long>(generated), static_cast<unsigned long long>(states),
        static_cast<unsigned long long>(nested), static_cast<unsigned long long>(workloads),
        static_cast<unsigned long long>(reserve_commits), static_cast<unsigned long long>(points),
        static_cast<unsigned long long>(all_of), static_cast<unsigned long long>(bad), seconds);
    CHECK(states >= wanted);
    CHECK(reserve_commits > 0);
}

}  // namespace dcs::test
