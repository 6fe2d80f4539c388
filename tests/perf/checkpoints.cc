// Checkpoints that the scheduler accepts: 1,000 running grains report one of 100 kB each, frames decoded and committed
// (servers have encoded them), beside write and fdatasync of the same bytes into one file, in turns on the same disk.
//   perf_checkpoints [ROUNDS=5 [GRAINS=1000 [BYTES=100000]]]
#include <chrono>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "perf/figures.h"
#include "perf/pool.h"
#include "scheduler/record/read_blob.h"

namespace dcs::perf {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Trial {
    std::string directory;
    int rounds = 5, grains = 1000;
    std::size_t bytes = 100'000;
    std::vector<wire::WireGrain> running;

    // Contents that no round and no grain has twice.
    std::string checkpoint(int round, std::size_t grain) const {
        std::string text = std::to_string(round) + "." + std::to_string(grain) + ".";
        std::uint64_t x = 88172645463325252U + static_cast<std::uint64_t>(round) * 1'000'003 + grain;
        while (text.size() < bytes) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            text.append(reinterpret_cast<const char *>(&x), sizeof x);
        }
        text.resize(bytes);
        return text;
    }

    ConnId start(Pool &pool) {
        core::HostConfig config;
        config.name = "host17";
        config.slots = grains;
        config.interval = seconds(100000);
        config.alert = config.limit = seconds(300000);
        pool.turn->take_host_table({config});
        const ConnId control = pool.control("ann", 1);
        for (int g = 0; g < grains; ++g) pool.post(control, wire::Gexec{1, g, small_grain(g)});
        const ConnId server = pool.open(turn::Door::server, "root");
        wire::FirstCall call;
        call.host = config.name;
        pool.post(server, call);
        pool.pump();
        running = pool.outside->launched;
        if (running.size() != static_cast<std::size_t>(grains)) must(fail(Code::internal, "not all run"), "start");
        return server;
    }

    double report(Pool &pool, ConnId server, int round) {
        std::vector<wire::GrainReport> reports(running.size());
        for (std::size_t i = 0; i < running.size(); ++i) {
            reports[i].key = running[i];
            reports[i].incarnation = pool.turn->state().grain(wire::key_of(running[i]))->incarnation;
            reports[i].first_seq = reports[i].last_seq = static_cast<std::uint32_t>(round);
            reports[i].has_checkpoint = true;
            reports[i].checkpoint = checkpoint(round, i);
        }
        std::vector<turn::Arrival> frames;
        for (const wire::GrainReport &one : reports) frames.push_back(pool.frame(server, one));
        reports.clear();
        const auto begin = Clock::now();
        for (turn::Arrival &frame : frames) pool.turn->take(std::move(frame));
        pool.pump();
        return since(begin);
    }

    double plain(int round) const {
        std::vector<std::string> texts;
        for (std::size_t i = 0; i < running.size(); ++i) texts.push_back(checkpoint(round, i));
        const auto begin = Clock::now();
        const int fd = ::open((directory + "/plain").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        bool good = fd >= 0;
        for (const std::string &text : texts)
            good = good && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
        if (!good || ::fdatasync(fd) != 0) must(fail(Code::io_error, std::strerror(errno)), "plain");
        ::close(fd);
        return since(begin);
    }
};

int run(int argc, char **argv) {
    Trial trial;
    if (argc > 1) trial.rounds = std::atoi(argv[1]);
    if (argc > 2) trial.grains = std::atoi(argv[2]);
    if (argc > 3) trial.bytes = static_cast<std::size_t>(std::atol(argv[3]));
    if (trial.rounds < 1 || trial.grains < 1) must(fail(Code::invalid, "ROUNDS and GRAINS are positive"), "usage");
    const char *place = std::getenv("TMPDIR");
    std::string pattern = std::string(place ? place : "/var/tmp") + "/dcs-perf-XXXXXX";
    if (!::mkdtemp(pattern.data())) must(fail(Code::io_error, std::strerror(errno)), pattern.c_str());
    trial.directory = pattern;
    {
        std::filesystem::create_directories(trial.directory + "/state");
        Pool pool(trial.directory + "/state");
        const ConnId server = trial.start(pool);
        const double megabytes = trial.grains * static_cast<double>(trial.bytes) / 1e6;
        for (int round = 1; round <= trial.rounds; ++round) {
            const double plain = megabytes / trial.plain(round), ours = megabytes / trial.report(pool, server, round);
            std::printf("%d checkpoints of %zu bytes: %.0f MB/s, write and fdatasync %.0f: %.2f\n", trial.grains,
                        trial.bytes, ours, plain, ours / plain);
            std::fflush(stdout);
            figure(std::to_string(trial.grains) + " checkpoints of " + std::to_string(trial.bytes) +
                       " bytes, of write and fdatasync",
                   ours, plain, "MB/s");
        }
        const auto key = wire::key_of(trial.running.back());
        const auto kept = record::read_checkpoint(*pool.store, key, *pool.turn->state().grain(key));
        must(kept.status(), "reading a checkpoint");
        if (*kept != trial.checkpoint(trial.rounds, trial.running.size() - 1))
            must(fail(Code::internal, "it is not the last one"), "reading a checkpoint");
    }
    std::filesystem::remove_all(trial.directory);
    return 0;
}

}  // namespace
}  // namespace dcs::perf

int main(int argc, char **argv) { return dcs::perf::run(argc, argv); }
