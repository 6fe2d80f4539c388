#include "sim/scale.h"

#include <cstdio>

#include <sys/resource.h>

#include "sim/world.h"

namespace dcs::sim {
namespace {

double megabytes() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_maxrss) / 1024;
}

struct Cost {
    double call_in_us = 0, grain_us = 0, cpu_s = 0;
};

// The simulated disk's own time is not the scheduler's.
Cost cost_of(const World &world, std::uint64_t finished) {
    const SchedulerNode::Figures &f = world.scheduler.figures;
    Cost cost;
    const double committed = f.commit_cpu.seconds() - world.medium->spent().seconds();
    cost.cpu_s = f.cpu.seconds() + committed;
    if (f.call_ins > 0) cost.call_in_us = f.cpu.seconds() * 1e6 / static_cast<double>(f.call_ins);
    if (finished > 0) cost.grain_us = cost.cpu_s * 1e6 / static_cast<double>(finished);
    return cost;
}

}  // namespace

bool is_scale_run(const Options &o) { return o.faults == "none" && (o.hosts >= 1000 || o.grains >= 100'000); }

int scale_run(const Options &o) {
    const Plan plan = scale_plan(o);
    World world(plan);
    const Duration start = thread_time();
    world.run();
    if (!world.clock.fine()) {
        std::printf("seed %llu FAILED: %s\n", static_cast<unsigned long long>(plan.seed), world.clock.wrong.c_str());
        return 1;
    }
    const std::uint64_t finished = world.watch.promises.results();
    const Cost cost = cost_of(world, finished);
    const SchedulerNode::Figures &f = world.scheduler.figures;
    std::printf("%d hosts of %d slots, %llu grains of %lld finished, in %.1f days of virtual time\n", plan.hosts,
                plan.slots, static_cast<unsigned long long>(finished), static_cast<long long>(plan.grains),
                static_cast<double>(world.clock.now.ns) / 86400e9);
    std::printf("%s\n", world.summary().c_str());
    std::printf("scheduler: %.1f s CPU for %llu call-ins, %llu launches, %llu frames in, %llu commits\n", cost.cpu_s,
                static_cast<unsigned long long>(f.call_ins), static_cast<unsigned long long>(f.launches),
                static_cast<unsigned long long>(f.frames_in), static_cast<unsigned long long>(f.commits));
    std::printf(
        "%.1f us of CPU for each call-in with its reports (commits aside), %.1f us for each finished grain "
        "(all in all)\n",
        cost.call_in_us, cost.grain_us);
    std::printf("the whole simulation: %.0f s CPU, %.0f MiB\n", Duration{thread_time().ns - start.ns}.seconds(),
                megabytes());
    return 0;
}

// Each cell: a pool of so many hosts works off so many grains within ten intervals.
int scale_table(const Options &o) {
    std::printf("us of scheduler CPU for each finished grain / for each call-in\n%12s", "grains");
    for (const int hosts : {100, 1000, 10000}) std::printf("%16d hosts", hosts);
    std::printf("\n");
    for (const std::int64_t grains : {1000, 10'000, 100'000, 1'000'000}) {
        std::printf("%12lld", static_cast<long long>(grains));
        for (const int hosts : {100, 1000, 10000}) {
            Options cell = o;
            cell.hosts = hosts;
            cell.grains = grains;
            cell.slots = 4;
            cell.interval_s = 3600;
            cell.days = 10.0 / 24;
            World world(scale_plan(cell));
            world.run();
            if (!world.clock.fine()) {
                std::printf("\nFAILED: %s\n", world.clock.wrong.c_str());
                return 1;
            }
            const Cost cost = cost_of(world, world.watch.promises.results());
            std::printf("%13.1f /%7.1f", cost.grain_us, cost.call_in_us);
            std::fflush(stdout);
        }
        std::printf("\n");
    }
    return 0;
}

}  // namespace dcs::sim
