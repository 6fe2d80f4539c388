// What learned limits do to jobs, beside fixed ones: good runs ended by mistake, and how long a hang goes unseen.
// Everything is computed, nothing is run, so the same seeds give the same figures.
//   perf_learned [SEEDS [RUNS]]   the tables
//   perf_learned --log FILE       the recorded runs of a run.log, each limited by what was known before it
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <random>

#include "locks/learn.h"
#include "locks/files/run_log.h"

namespace dcs::locks {
namespace {

constexpr double minute = 60.0 * second, hour = 60 * minute, day = 24 * hour;
constexpr double job = minute, interval = hour;  // the job of the tables
constexpr double seen_as_active = 0.95, hang_seen_as_active = 0.1, hangs = 0.01;
using Random = std::mt19937_64;

double uniform(Random &random) { return std::uniform_real_distribution<double>(0, 1)(random); }
double normal(Random &random) { return std::normal_distribution<double>(0, 1)(random); }
double rough(Random &random) { return std::max(0.5, 1 + 0.1 * normal(random)); }

struct Workload {
    const char *name;
    double hint;                                               // the interval that the caller tells
    std::function<double(Random &, int run, int runs)> times;  // runtime over `job`
    std::function<double(int run, int runs)> typical;          // its median
};

std::vector<Workload> workloads() {
    const auto one = [](int, int) { return 1.0; };
    return {
        {"steady", interval, [](Random &r, int, int) { return rough(r); }, one},
        {"variable", interval, [](Random &r, int, int) { return std::exp(normal(r)); }, one},
        {"growing", interval, [](Random &r, int i, int n) { return rough(r) * (1 + 4.0 * i / n); },
         [](int i, int n) { return 1 + 4.0 * i / n; }},
        {"weekly x30", interval, [](Random &r, int i, int) { return rough(r) * (i % 24 == 23 ? 30 : 1); }, one},
        {"step x10", interval, [](Random &r, int i, int n) { return rough(r) * (i < n / 2 ? 1 : 10); },
         [](int i, int n) { return i < n / 2 ? 1.0 : 10.0; }},
        {"Pareto 1.5", interval, [](Random &r, int, int) { return std::pow(1 - uniform(r), -1 / 1.5) / 1.587; }, one},
        {"first/5", 4 * minute, [](Random &r, int, int) { return 50 * rough(r); }, [](int, int) { return 50.0; }},
    };
}

struct Limits {
    double soft = 0, hard = 0, predicted = -1;
};
using Rule = std::function<Limits(const std::vector<Sample> &, double hint)>;

struct NamedRule {
    const char *name;
    Rule rule;
};

Limits fixed(double limit) { return {limit, limit, -1}; }

Limits twice_the_mean(const std::vector<Sample> &samples, double hint) {
    double sum = 0;
    int n = 0;
    for (std::size_t i = samples.size(); i > 0 && n < 20; --i) {
        if (samples[i - 1].outcome != Outcome::done) continue;
        sum += static_cast<double>(samples[i - 1].runtime);
        ++n;
    }
    return fixed(n == 0 ? std::max(1.5 * hint, 10 * minute) : 2 * sum / n);
}

Limits learned(const std::vector<Sample> &samples, double hint, std::int64_t if_elapsed) {
    const Learned l = learn(samples, {}, LearnBounds(), static_cast<std::int64_t>(hint), if_elapsed, -1);
    return {static_cast<double>(l.soft), static_cast<double>(l.hard), l.false_kills};
}

std::vector<NamedRule> rules() {
    return {
        {"1.5 intervals", [](const auto &, double hint) { return fixed(1.5 * hint); }},
        {"2 x mean of 20", twice_the_mean},
        {"learned", [](const auto &s, double hint) { return learned(s, hint, 0); }},
        {"learned, -i auto", [](const auto &s, double hint) { return learned(s, hint, -1); }},
    };
}

struct Figures {
    long good = 0, killed = 0, foretold = 0;
    std::vector<double> detection;     // limit of a hanging run over the typical runtime
    std::vector<double> kills_before;  // the first success, of each seed; runs of the seed if there was none
    double predicted = 0;
};

// One job's life under a rule. A run that is ended is not repeated before its next turn.
void live(const Workload &work, const Rule &rule, std::uint64_t seed, int runs, Figures &figures) {
    Random random(seed * 7919);
    std::vector<Sample> samples;
    double first_success = -1;
    long killed = 0;
    for (int i = 0; i < runs; ++i) {
        const bool hang = i > 0 && uniform(random) < hangs;
        const double runtime = job * work.times(random, i, runs);
        const bool active = uniform(random) < (hang ? hang_seen_as_active : seen_as_active);
        const Limits limits = rule(samples, work.hint);
        const double limit = active ? limits.hard : limits.soft;
        const bool ended = hang || runtime > limit;
        Sample sample;
        sample.wall = static_cast<std::int64_t>(1e18 + i * interval);
        sample.runtime = static_cast<std::int64_t>(ended ? limit : runtime);
        sample.cpu = active ? sample.runtime / 10 : 0;
        sample.outcome = ended ? Outcome::expired : Outcome::done;
        sample.progressing = ended && active;
        samples.push_back(sample);
        if (samples.size() > samples_kept) samples.erase(samples.begin());
        if (hang) {
            figures.detection.push_back(limit / (job * work.typical(i, runs)));
            continue;
        }
        ++figures.good;
        if (i >= 10) {  // without evidence nothing is foretold
            figures.predicted += limits.predicted;
            ++figures.foretold;
        }
        if (ended) ++killed;
        if (!ended && first_success < 0) first_success = static_cast<double>(killed);
    }
    figures.killed += killed;
    figures.kills_before.push_back(first_success < 0 ? runs : first_success);
}

double quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, static_cast<std::size_t>(q * static_cast<double>(values.size())))];
}

void expiry_table(int seeds, int runs) {
    std::printf(
        "False kills per thousand good runs / limit over the median runtime when a run hangs\n"
        "(%d seeds x %d hourly runs of 60 s, 1 %% hang; -i auto: ExpireAfter > IfElapsed holds too;\n"
        "first/5: the first limit is a fifth of the runtime)\n",
        seeds, runs);
    std::printf("%-18s", "");
    for (const Workload &work : workloads()) std::printf(" %14s", work.name);
    std::printf("\n");
    for (const NamedRule &rule : rules()) {
        std::printf("%-18s", rule.name);
        std::vector<Figures> all;
        for (const Workload &work : workloads()) {
            Figures &figures = all.emplace_back();
            for (int seed = 1; seed <= seeds; ++seed)
                live(work, rule.rule, static_cast<std::uint64_t>(seed), runs, figures);
            const double good = static_cast<double>(figures.good), killed = static_cast<double>(figures.killed);
            std::printf(" %6.1f / %4.1fx", 1000 * killed / good, quantile(figures.detection, 0.5));
        }
        std::printf("\n%-18s", "  worst hang");
        for (const Figures &figures : all) std::printf("          %4.0fx", quantile(figures.detection, 0.9));
        if (all[0].predicted > 0) {
            std::printf("\n%-18s", "  predicted");
            for (const Figures &f : all) std::printf(" %6.1f        ", f.predicted / static_cast<double>(f.foretold));
        }
        const double kills = quantile(all.back().kills_before, 0.5);
        std::printf("\n%-18s kills before the first success in first/5: median %.0f, worst %.0f%s\n", "", kills,
                    quantile(all.back().kills_before, 1), kills >= runs ? " (never succeeds)" : "");
    }
}

// --- IfElapsed ------------------------------------------------------------------------------------------------

enum class Asker { cron, hand, burst };

struct Request {
    double at = 0;
    Asker asker = Asker::cron;
    bool operator<(const Request &other) const { return at < other.at; }
};

// Three weeks hourly with twenty seconds of jitter, then three every twenty minutes; two runs by hand on a day,
// five times 500 requests within half an hour.
std::vector<Request> requests(Random &random) {
    std::vector<Request> all;
    const double weeks3 = 21 * day;
    for (double at = 0; at < weeks3; at += hour) all.push_back({at + 20 * second * uniform(random), Asker::cron});
    for (double at = weeks3; at < 2 * weeks3; at += hour / 3)
        all.push_back({at + 20 * second * uniform(random), Asker::cron});
    for (int i = 0; i < 84; ++i) all.push_back({2 * weeks3 * uniform(random), Asker::hand});
    for (int burst = 0; burst < 5; ++burst) {
        const double at = 2 * weeks3 * (0.1 + 0.8 * uniform(random));
        for (int i = 0; i < 500; ++i) all.push_back({at + i * 3.6 * second, Asker::burst});
    }
    std::sort(all.begin(), all.end());
    return all;
}

enum class Guard { fixed_15, none, learned, without_burst };

void if_elapsed_of(Guard guard, std::uint64_t seed, double granted[3], double asked[3], double &longest_limit) {
    Random random(seed);
    std::vector<Sample> samples;
    std::vector<Denial> denials;
    double free_at = 0, last_end = -1e30, if_elapsed = 0;
    for (const Request &request : requests(random)) {
        const int who = static_cast<int>(request.asker);
        ++asked[who];
        const double runtime = job * rough(random);
        Denial denial;
        denial.wall = static_cast<std::int64_t>(1e18 + request.at);
        if_elapsed = guard == Guard::fixed_15 ? 15 * minute : 0;
        if (guard == Guard::learned || guard == Guard::without_burst) {
            const Learned l = learn(samples, denials, LearnBounds(), 0, -1, -1);
            if_elapsed = static_cast<double>(l.if_elapsed) / (guard == Guard::learned ? 1 : l.burst_factor);
        }
        longest_limit = std::max(longest_limit, if_elapsed);
        denial.too_soon = request.at >= free_at;
        const double slack = std::min(0.02 * if_elapsed, 30.0 * second);
        if (request.at < free_at || request.at - last_end < if_elapsed - slack) {
            denials.push_back(denial);
            if (denials.size() > refusals_kept) denials.erase(denials.begin());
            continue;
        }
        ++granted[who];
        Sample sample;
        sample.wall = denial.wall;
        sample.runtime = static_cast<std::int64_t>(runtime);
        sample.outcome = Outcome::done;
        samples.push_back(sample);
        if (samples.size() > samples_kept) samples.erase(samples.begin());
        free_at = last_end = request.at + runtime;
    }
}

void if_elapsed_table(int seeds) {
    std::printf("\nIfElapsed: granted requests (60 -> 20 min cron, 84 by hand, 5 bursts of 500 in 30 min; %d seeds)\n",
                seeds);
    std::printf("%-24s %10s %10s %16s %14s\n", "", "cron", "by hand", "of each burst", "longest limit");
    const std::pair<const char *, Guard> guards[] = {{"fixed 15 min", Guard::fixed_15},
                                                     {"none", Guard::none},
                                                     {"learned, no burst guard", Guard::without_burst},
                                                     {"learned", Guard::learned}};
    for (const auto &[name, guard] : guards) {
        double granted[3] = {}, asked[3] = {}, longest = 0;
        for (int seed = 1; seed <= seeds; ++seed)
            if_elapsed_of(guard, static_cast<std::uint64_t>(seed), granted, asked, longest);
        std::printf("%-24s %8.1f %% %8.1f %% %16.1f %10.1f min\n", name, 100 * granted[0] / asked[0],
                    100 * granted[1] / asked[1], 500 * granted[2] / asked[2], longest / minute);
    }
}

// --- recorded runs --------------------------------------------------------------------------------------------

Outcome outcome_of(const std::string &event) {
    for (const Outcome outcome : {Outcome::done, Outcome::failed, Outcome::expired, Outcome::crashed})
        if (event == outcome_name(outcome)) return outcome;
    return Outcome::none;
}

void replay(const std::string &name, const std::vector<Sample> &runs) {
    for (const NamedRule &rule : rules()) {
        std::vector<Sample> before;
        std::vector<std::int64_t> runtimes;
        double good = 0, killed = 0;
        std::vector<double> over_median;
        for (const Sample &run : runs) {
            const Limits limits = rule.rule(before, 0);
            const double limit = run.cpu > 0 || run.io > 0 ? limits.hard : limits.soft;
            if (run.outcome == Outcome::done) {
                ++good;
                if (limit > 0 && static_cast<double>(run.runtime) > limit) ++killed;
                runtimes.push_back(run.runtime);
            }
            if (!runtimes.empty()) {
                std::vector<std::int64_t> sorted = runtimes;
                std::sort(sorted.begin(), sorted.end());
                const std::int64_t middle = std::max<std::int64_t>(sorted[sorted.size() / 2], 1);
                over_median.push_back(limits.soft / static_cast<double>(middle));
            }
            before.push_back(run);
            if (before.size() > samples_kept) before.erase(before.begin());
        }
        std::printf("%-40s %-18s %6.0f good runs, %6.1f of 1000 ended by mistake, a hang is seen after %.1f medians\n",
                    name.c_str(), rule.name, good, good > 0 ? 1000 * killed / good : 0, quantile(over_median, 0.5));
    }
}

int replay_log(const char *path) {
    std::ifstream file(path);
    if (!file) {
        std::fprintf(stderr, "perf_learned: cannot read %s: %s\n", path, std::strerror(errno));
        return 1;
    }
    std::map<std::string, std::vector<Sample>> atoms;
    for (std::string text; std::getline(file, text);) {
        LogLine line;
        if (!parse_log_line(text, line) || line.runtime < 0) continue;
        Sample sample;
        sample.outcome = outcome_of(line.event);
        if (sample.outcome == Outcome::none) continue;
        sample.wall = line.wall - line.runtime;  // a line is written at the end of its run
        sample.runtime = line.runtime;
        sample.cpu = std::max<std::int64_t>(line.cpu, 0);
        sample.io = std::max<std::int64_t>(line.io, 0);
        sample.waited = std::max<std::int64_t>(line.waited, 0);
        atoms[line.name].push_back(sample);
    }
    for (const auto &[name, runs] : atoms) replay(name, runs);
    if (atoms.empty()) std::fprintf(stderr, "perf_learned: %s records no runs\n", path);
    return atoms.empty() ? 1 : 0;
}

}  // namespace
}  // namespace dcs::locks

int main(int argc, char **argv) {
    if (argc == 3 && std::strcmp(argv[1], "--log") == 0) return dcs::locks::replay_log(argv[2]);
    const int seeds = argc > 1 ? std::atoi(argv[1]) : 40, runs = argc > 2 ? std::atoi(argv[2]) : 400;
    if (seeds < 1 || runs < 1) {
        std::fprintf(stderr, "usage: perf_learned [SEEDS [RUNS]] | --log FILE\n");
        return 2;
    }
    dcs::locks::expiry_table(seeds, runs);
    dcs::locks::if_elapsed_table(seeds);
    return 0;
}
