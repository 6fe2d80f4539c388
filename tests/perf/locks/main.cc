// The locks beside what else there is, in one run: each table's rows take turns, so that a slow minute is each
// process's. Ends with the goals. No test judges by the figures.
//   perf_locks [EFFORT [PART [DIRECTORY]]]   effort 1 is a full measurement (minutes), 0.02 a look whether it works;
//                                            part: all, cost, hand_over, recovery, slots, command, expiry, learning
#include "bench.h"

int main(int argc, char **argv) {
    using namespace dcs::locks::perf;
    const double effort = argc > 1 ? std::atof(argv[1]) : 1;
    std::string pattern = std::string(argc > 3 ? argv[3] : "/var/tmp") + "/dcs-locks-XXXXXX";
    if (effort <= 0 || ::mkdtemp(pattern.data()) == nullptr) {
        std::fprintf(stderr, "usage: perf_locks [EFFORT [PART [DIRECTORY]]]\n");
        return 2;
    }
    Bench bench(pattern, effort);
    const std::string part = argc > 2 ? argv[2] : "all";
    const std::pair<const char *, void (*)(Bench &)> parts[] = {
        {"cost", cost},       {"hand_over", hand_over}, {"recovery", recovery}, {"slots", slots},
        {"command", command}, {"expiry", expiry},       {"learning", learning}};
    for (const auto &[name, measure] : parts)
        if (part == "all" || part == name) measure(bench);
    std::printf("\nGoals\n");
    for (const Goal &goal : bench.goals()) {
        std::printf("  %-6s %s: %s\n         goal %s\n", goal.met ? "met" : "missed", goal.what.c_str(),
                    goal.figure.c_str(), goal.goal.c_str());
        if (!goal.met) std::printf("         because %s\n", goal.cause.c_str());
    }
    std::filesystem::remove_all(pattern);
    return 0;
}
