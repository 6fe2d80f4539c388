// The locks beside what else there is, in one run: each table's rows take turns, so that a slow minute is everybody's.
// Ends with the goals. No test judges by the figures.
//   perf_locks [EFFORT [DIRECTORY]]     effort 1 is a full measurement (minutes), 0.02 a look whether it works
#include "bench.h"

int main(int argc, char **argv) {
    using namespace dcs::locks::perf;
    const double effort = argc > 1 ? std::atof(argv[1]) : 1;
    std::string pattern = std::string(argc > 2 ? argv[2] : "/var/tmp") + "/dcs-locks-XXXXXX";
    if (effort <= 0 || ::mkdtemp(pattern.data()) == nullptr) {
        std::fprintf(stderr, "usage: perf_locks [EFFORT [DIRECTORY]]\n");
        return 2;
    }
    Bench bench(pattern, effort);
    cost(bench);
    hand_over(bench);
    recovery(bench);
    slots(bench);
    command(bench, DCS_BINARY_DIR "/bin");
    expiry(bench);
    learning(bench);
    std::printf("\nGoals\n");
    for (const Goal &goal : bench.goals()) {
        std::printf("  %-6s %s: %s\n         goal %s\n", goal.met ? "met" : "missed", goal.what.c_str(),
                    goal.figure.c_str(), goal.goal.c_str());
        if (!goal.met) std::printf("         because %s\n", goal.cause.c_str());
    }
    std::filesystem::remove_all(pattern);
    return 0;
}
