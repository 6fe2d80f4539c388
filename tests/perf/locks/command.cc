// What it costs to run a command under a lock: dcs_lock beside flock(1), over the command alone.
#include <cerrno>
#include <spawn.h>

#include "bench.h"
#include "locks/learn.h"

extern char **environ;

namespace dcs::locks::perf {
namespace {

double run(const std::vector<std::string> &words, bool *ok) {
    std::vector<char *> argv;
    for (const std::string &word : words) argv.push_back(const_cast<char *>(word.c_str()));
    argv.push_back(nullptr);
    const std::int64_t begin = now_ns();
    pid_t pid = 0;
    if (::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) die("cannot start " + words[0]);
    int status = 0;
    ::waitpid(pid, &status, 0);
    *ok = *ok && status == 0;
    return static_cast<double>(now_ns() - begin) / 1000;
}

// The quietest tenth: what else runs on the host counts several times in a chain of processes.
double quiet(std::vector<double> values) { return quantile(std::move(values), 0.1); }

}  // namespace

void command(Bench &bench) {
    const std::string directory = bench.folder("command"), ours = DCS_BINARY_DIR "/bin/dcs_lock";
    if (::access(ours.c_str(), X_OK) != 0 || ::access("/usr/bin/flock", X_OK) != 0) {
        std::printf("\nThe command was not measured: %s or /usr/bin/flock is missing\n", ours.c_str());
        return;
    }
    ::setenv("DCS_LOCK_DIR", directory.c_str(), 1);
    const std::vector<std::vector<std::string>> commands = {{"/bin/true"},
                                                            {"/usr/bin/flock", directory + "/flock", "/bin/true"},
                                                            {"/usr/bin/flock", "-F", directory + "/flock", "/bin/true"},
                                                            {ours, directory + "/path", "/bin/true"},
                                                            {ours, "name", "/bin/true"},
                                                            {ours, "-q", "queued", "/bin/true"},
                                                            {ours, "-j", "4", "counted", "/bin/true"},
                                                            {ours, "-i", "0", "-e", "90m", "adaptive", "/bin/true"}};
    std::vector<std::vector<double>> figures(commands.size());
    std::vector<char> ok(commands.size(), 1);
    for (int i = 0; i < bench.times(300); ++i) {
        for (std::size_t c = 0; c < commands.size(); ++c) {
            bool good = true;
            figures[c].push_back(run(commands[c], &good));
            if (!good) ok[c] = 0;
        }
    }
    const double alone = quiet(figures[0]);
    std::printf("\nRunning /bin/true under a lock (alone: %.0f us; the quietest tenth)\n", alone);
    for (std::size_t c = 1; c < commands.size(); ++c) {
        std::string name;
        for (const std::string &word : commands[c]) name += word.substr(word.rfind('/') + 1) + " ";
        std::printf("  %-44s +%5.0f us%s\n", name.c_str(), quiet(figures[c]) - alone, ok[c] ? "" : "  (it failed)");
    }
    const double flock_cost = quiet(figures[1]) - alone, mine = quiet(figures[4]) - alone;
    figure("dcs_lock name /bin/true, of flock(1): above the command alone", mine, flock_cost, "us");
    bench.goal({"command overhead", "<= +650 us", text("+%.0f us, flock(1) +%.0f us", mine, flock_cost), mine <= 650,
                "a supervisor forks, watches the command's tree and reports it; see flock -F for a bare exec"});
}

void learning(Bench &bench) {
    std::vector<Sample> samples(100);
    for (std::size_t i = 0; i < samples.size(); ++i) {
        samples[i].wall = static_cast<std::int64_t>(i) * 3'600'000'000'000;
        samples[i].runtime = 60'000'000'000 + static_cast<std::int64_t>(i % 11) * 1'000'000'000;
        samples[i].cpu = 1;
        samples[i].outcome = Outcome::done;
    }
    const Learned learned = learn(samples, {}, LearnBounds(), 0, 0, -1);
    const double medians = static_cast<double>(learned.soft) / 65e9;
    bench.goal(
        {"hang detection of a 60-s hourly job; false kills", "<= 2.5 medians; 0",
         text("%.1f medians, the paper's 1.5 intervals 90; %.2f of 1000 predicted", medians, learned.false_kills),
         medians <= 2.5 && learned.false_kills < 0.01,
         "with a learned or longer IfElapsed the limit is above that, as the paper demands"});
}

}  // namespace dcs::locks::perf
