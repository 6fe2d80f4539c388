// dcs_sim: pools in virtual time (tests/sim/world.h).
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/version.h"
#include "sim/planted.h"
#include "sim/scale.h"
#include "sim/world.h"

namespace dcs::sim {
namespace {

Options options;
volatile std::uint64_t seed_at_hand = 0;

// A DCS_REQUIRE failed: which seed it was.
extern "C" void on_abort(int) {
    std::printf("seed %llu ABORTED; version %s\n  repeat: %s --seed %llu --trace\n",
                static_cast<unsigned long long>(seed_at_hand), DCS_VERSION, options.command.c_str(),
                static_cast<unsigned long long>(seed_at_hand));
    std::fflush(stdout);
    std::_Exit(3);
}

Plan plan_of(std::uint64_t seed) {
    auto plan = make_plan(options, seed);
    if (plan) return *plan;
    std::fprintf(stderr, "dcs_sim: %s\n", plan.status().text.c_str());
    std::exit(2);
}

void tell_failure(const Plan &plan, const World &world) {
    World again(plan);  // the same history, this time with words
    again.clock.tracing = true;
    again.run();
    std::printf("seed %llu FAILED: %s\n  version %s; %s\n  the last events:\n",
                static_cast<unsigned long long>(plan.seed), world.clock.wrong.c_str(), DCS_VERSION,
                plan.text().c_str());
    for (const std::string &line : again.clock.lines) std::printf("    %s\n", line.c_str());
    if (again.clock.wrong != world.clock.wrong)
        std::printf("  NOT REPEATED: the second time it says `%s`\n", again.clock.wrong.c_str());
    std::printf("  repeat: %s --seed %llu --trace\n", options.command.c_str(),
                static_cast<unsigned long long>(plan.seed));
}

bool run_seed(std::uint64_t seed) {
    seed_at_hand = seed;
    const Plan plan = plan_of(seed);
    World world(plan);
    world.clock.tracing = world.clock.print = options.trace;
    world.run();
    if (!world.clock.fine()) {
        tell_failure(plan, world);
        return false;
    }
    if (options.hash)
        std::printf("seed %llu hash %016llx\n", static_cast<unsigned long long>(seed),
                    static_cast<unsigned long long>(world.clock.hash));
    else if (!options.quiet)
        std::printf("seed %llu ok: %s; %s\n", static_cast<unsigned long long>(seed), world.summary().c_str(),
                    plan.text().c_str());
    std::fflush(stdout);
    return true;
}

std::uint64_t *seeds_done = nullptr;  // shared by all jobs

// Every jobs-th seed from `first` on; stops at the first failure.
int run_seeds(std::uint64_t first) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = first; i < options.seeds; i += static_cast<std::uint64_t>(options.jobs)) {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
        if (options.seconds > 0 && passed.count() > options.seconds) break;
        if (!run_seed(options.seed + i)) return 1;
        __atomic_add_fetch(seeds_done, 1, __ATOMIC_RELAXED);
    }
    return 0;
}

int run_jobs() {
    std::vector<pid_t> children;
    for (int j = 0; j < options.jobs; ++j) {
        const pid_t pid = ::fork();
        if (pid < 0) {
            std::perror("dcs_sim: fork");
            return 2;
        }
        if (pid == 0) {
            const int code = run_seeds(static_cast<std::uint64_t>(j));
            std::fflush(stdout);
            std::_Exit(code);
        }
        children.push_back(pid);
    }
    int worst = 0;
    for (const pid_t pid : children) {
        int status = 0;
        ::waitpid(pid, &status, 0);
        worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 3);
    }
    return worst;
}

int run(int argc, char **argv) {
    options = read_options(argc, argv);
    if (!options.plant.empty() && store_plant(options.plant).empty()) plant(options.plant.c_str());
    std::signal(SIGABRT, on_abort);
    if (options.scale_table) return scale_table(options);
    if (is_scale_run(options)) return scale_run(options);
    void *shared = ::mmap(nullptr, sizeof *seeds_done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 2;
    seeds_done = static_cast<std::uint64_t *>(shared);
    const int code = options.jobs > 1 ? run_jobs() : run_seeds(0);
    if (code == 0) std::printf("%llu seeds, nothing wrong\n", static_cast<unsigned long long>(*seeds_done));
    return code;
}

}  // namespace
}  // namespace dcs::sim

int main(int argc, char **argv) { return dcs::sim::run(argc, argv); }
