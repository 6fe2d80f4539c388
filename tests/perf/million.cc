// One session of a million small grains: what each costs on disk and in memory, how long a restart
// and a lookup take. Usage: perf_million [GRAINS [DIRECTORY]]; the directory is kept if given.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <malloc.h>
#include <unistd.h>

#include "perf/figures.h"
#include "perf/pool.h"

namespace dcs::perf {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Resident memory after what was freed has been given back.
std::int64_t resident_bytes() {
    ::malloc_trim(0);
    std::ifstream statm("/proc/self/statm");
    std::int64_t size = 0, resident = 0;
    statm >> size >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
}

std::int64_t disk_bytes(const std::string &directory) {
    std::int64_t sum = 0;
    for (const auto &entry : std::filesystem::recursive_directory_iterator(directory))
        if (entry.is_regular_file() && entry.path().filename() != "reserve")
            sum += static_cast<std::int64_t>(entry.file_size());
    return sum;
}

struct Trial {
    std::string directory;
    int grains;
    std::int64_t empty_memory = 0;

    void line(const char *when, Pool &pool) const {
        must(pool.store->flush().status, "flush");
        const double disk = double(disk_bytes(directory)) / grains;
        const double memory = double(resident_bytes() - empty_memory) / grains;
        std::printf("%-28s %6.0f bytes on disk, %6.0f bytes of memory a grain\n", when, disk, memory);
        const std::string whose = std::to_string(grains) + " grains, " + when;
        figure(whose + " disk of one", disk, 0, "bytes");
        figure(whose + " memory of one", memory, 0, "bytes");
        std::fflush(stdout);
    }

    void submit(Pool &pool) const {
        const ConnId control = pool.control("ann", 1);
        const auto start = Clock::now();
        for (int g = 0; g < grains; ++g) {
            pool.post(control, wire::Gexec{1, g, small_grain(g)});
            if ((g + 1) % 4096 == 0) pool.pump();
        }
        pool.pump();
        const double took = since(start);
        std::printf("submitted: %.0f a second, frames decoded, 4,096 a commit\n", grains / took);
        figure(std::to_string(grains) + " grains, submission of one", took / grains * 1e6, 0, "us");
    }

    // One server of many slots runs them all; each prints a line.
    void finish(Pool &pool) const {
        core::HostConfig config;
        config.name = "host17";
        config.slots = 2048;
        config.interval = seconds(100000);
        config.alert = config.limit = seconds(300000);
        pool.turn->take_host_table({config});
        pool.pump();
        const ConnId server = pool.open(turn::Door::server, "root");
        wire::FirstCall call;
        call.host = config.name;
        pool.post(server, call);
        const auto start = Clock::now();
        pool.pump();
        std::uint64_t done = 0;
        while (!pool.outside->launched.empty()) {
            const auto launched = std::exchange(pool.outside->launched, {});
            for (const wire::WireGrain &key : launched) {
                wire::GrainReport report;
                report.key = key;
                report.incarnation = pool.turn->state().grain(wire::key_of(key))->incarnation;
                report.first_seq = report.last_seq = 1;
                report.ended = true;
                report.out = "result " + std::to_string(key.grain) + "\n";
                report.usage.user_us = 1234 + key.grain;
                report.usage.system_us = 987;
                report.usage.max_rss_kb = 2500;
                report.usage.minor_faults = 212;
                pool.post(server, report);
                ++done;
            }
            pool.pump();
        }
        const double took = since(start);
        std::printf("started and finished: %.0f a second\n", double(done) / took);
        figure(std::to_string(grains) + " grains, start and end of one", took / grains * 1e6, 0, "us");
        if (done != static_cast<std::uint64_t>(grains)) must(fail(Code::internal, "not all ran"), "finish");
    }

    void restart(const char *when) {
        const auto start = Clock::now();
        Pool pool(directory);
        const double ready = since(start);
        const ConnId control = pool.control("ann", 1);
        std::vector<double> times;
        for (int i = 0; i < 200; ++i) {
            wire::Query query;
            query.type = wire::QueryType::grain;
            query.user = "ann";
            query.session = 1;
            query.grain = static_cast<std::int32_t>(std::int64_t{7919} * i % grains);
            const auto asked = Clock::now();
            pool.post(control, query);
            pool.pump();
            times.push_back(since(asked));
            const auto &rows = pool.outside->last_query.grains;
            if (rows.size() != 1 || rows[0].grain != query.grain || rows[0].argv.size() != 3)
                must(fail(Code::internal, "the wrong grain"), "lookup");
        }
        std::sort(times.begin(), times.end());
        std::printf("%-28s restart %.2f s from the disk; lookup of one grain: median %.3f ms, worst %.3f ms\n", when,
                    ready, times[100] * 1e3, times.back() * 1e3);
        const std::string whose = std::to_string(grains) + " grains, " + when;
        figure(whose + " restart for one", ready / grains * 1e6, 0, "us");
        figure(whose + " lookup of one", times[100] * 1e6, 0, "us");
        std::fflush(stdout);
    }
};

int run(int argc, char **argv) {
    Trial trial;
    trial.grains = argc > 1 ? std::atoi(argv[1]) : 1'000'000;
    const bool keep = argc > 2;
    std::string pattern = "/var/tmp/dcs-perf-XXXXXX";
    trial.directory = keep ? argv[2] : ::mkdtemp(pattern.data());
    std::filesystem::create_directories(trial.directory);
    if (trial.grains < 1) must(fail(Code::invalid, "GRAINS is a positive number"), "usage");
    std::printf("%d grains in %s\n", trial.grains, trial.directory.c_str());
    {
        Pool pool(trial.directory);
        trial.empty_memory = resident_bytes();
        trial.submit(pool);
        trial.line("ready:", pool);
    }
    trial.restart("ready:");
    {
        Pool pool(trial.directory);
        trial.finish(pool);
        trial.line("finished:", pool);
    }
    trial.restart("finished:");
    if (!keep) std::filesystem::remove_all(trial.directory);
    return 0;
}

}  // namespace
}  // namespace dcs::perf

int main(int argc, char **argv) { return dcs::perf::run(argc, argv); }
