#include "locks/learn.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "locks/files/world.h"

namespace dcs::locks {
namespace {

constexpr std::size_t window = 100;  // runs that count; older ones may be of another version of the program
constexpr std::size_t gaps_that_count = 20;
constexpr std::size_t gaps_to_trust = 5;  // with fewer gaps the caller's hint is used
constexpr double hard_over_soft = 4;
constexpr std::int64_t first_limit = 600 * second, whole_day = 24 * 3600 * second;
constexpr int doublings_max = 16;
constexpr std::size_t refusals_in_a_burst = 10;

std::int64_t nanoseconds(double value, std::int64_t least, std::int64_t most) {
    if (most < least) least = most;  // the upper bound protects the host
    if (!(value > static_cast<double>(least))) return least;
    return value >= static_cast<double>(most) ? most : static_cast<std::int64_t>(value);
}

std::int64_t median(std::vector<std::int64_t> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

struct Evidence {
    std::vector<std::int64_t> counted;  // runtimes of completed runs, and of runs ended in spite of progress
    std::vector<std::int64_t> done;
    std::int64_t longest = 0;
    std::size_t killed = 0, active = 0;  // active: of the completed ones, those that used CPU or I/O
    int silent_kills = 0;                // since the last success
};

Evidence evidence_of(const std::vector<Sample> &samples) {
    Evidence seen;
    for (std::size_t i = samples.size() > window ? samples.size() - window : 0; i < samples.size(); ++i) {
        const Sample &sample = samples[i];
        const bool ended_by_us = sample.outcome == Outcome::expired;
        if (ended_by_us) ++seen.killed;
        if (sample.outcome == Outcome::done) {
            seen.done.push_back(sample.runtime);
            seen.silent_kills = 0;
            if (sample.cpu > 0 || sample.io > 0) ++seen.active;
        } else if (ended_by_us && !sample.progressing) {
            ++seen.silent_kills;
            continue;
        } else if (!ended_by_us && sample.outcome != Outcome::failed) {
            continue;  // crashed or lost: its runtime is only the time until it was noticed
        }
        // A run that failed early says nothing about the duration of a good one; one that failed late does.
        seen.longest = std::max(seen.longest, sample.runtime);
        if (sample.outcome != Outcome::failed) seen.counted.push_back(sample.runtime);
    }
    return seen;
}

std::vector<std::int64_t> request_times(const std::vector<Sample> &samples, const std::vector<Denial> &denials) {
    std::vector<std::int64_t> times;
    for (const Sample &sample : samples) times.push_back(sample.wall - sample.waited);
    for (const Denial &denial : denials) times.push_back(denial.wall);
    std::sort(times.begin(), times.end());
    return times;
}

// Requests that follow each other faster than any limit would grant them are one burst and count once.
std::int64_t interval_of(const std::vector<std::int64_t> &times, const LearnBounds &bounds, std::int64_t hint) {
    std::vector<std::int64_t> gaps;
    std::int64_t last_alone = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (i > 0 && times[i] - times[i - 1] < bounds.elapsed_min) continue;
        if (i > 0) gaps.push_back(times[i] - last_alone);
        last_alone = times[i];
    }
    if (gaps.size() > gaps_that_count) gaps.erase(gaps.begin(), gaps.end() - gaps_that_count);
    if (hint > 0 && gaps.size() < gaps_to_trust) return hint;
    return median(std::move(gaps));
}

// Ten refusals within one ifelapsed double the factor; an interval without refusals halves it.
std::uint32_t burst_factor(const std::vector<Denial> &denials, std::int64_t if_elapsed, std::int64_t interval,
                           std::int64_t newest) {
    std::uint32_t factor = 1;
    std::vector<std::int64_t> recent;
    std::int64_t last = 0;
    const auto quiet_until = [&](std::int64_t wall) {
        for (std::int64_t quiet = wall - last; interval > 0 && factor > 1 && quiet >= interval; quiet -= interval)
            factor /= 2;
    };
    for (const Denial &denial : denials) {
        if (!denial.too_soon) continue;
        quiet_until(denial.wall);
        last = denial.wall;
        recent.push_back(denial.wall);
        if (recent.size() <= refusals_in_a_burst) continue;
        if (recent.back() - recent.front() <= if_elapsed) {
            factor = std::min(factor * 2, std::uint32_t{1} << doublings_max);
            recent.clear();
        } else {
            recent.erase(recent.begin());
        }
    }
    quiet_until(newest);
    return factor;
}

// Names the most frequent requester if the last day had too many refusals within one ifelapsed, for any reason.
void name_spammer(Learned &out, const std::vector<Denial> &denials, std::int64_t if_elapsed, std::int64_t newest) {
    std::vector<const Denial *> recent;
    for (const Denial &denial : denials)
        if (newest - denial.wall < whole_day) recent.push_back(&denial);
    for (std::size_t i = refusals_in_a_burst; i < recent.size(); ++i)
        if (recent[i]->wall - recent[i - refusals_in_a_burst]->wall <= if_elapsed) out.spammed = true;
    if (!out.spammed) return;
    std::map<std::string, int> count;
    int most = 0;
    for (const Denial *denial : recent) {
        const std::string who = "uid " + std::to_string(denial->uid) + ", " +
                                (denial->command.empty() ? "unknown command" : denial->command) + ", parent " +
                                std::to_string(denial->parent);
        if (++count[who] <= most) continue;
        most = count[who];
        out.spammer = who;
    }
}

// The probability that the next run exceeds `limit`, if it is like the others: one in n + 1 is a new maximum, and the
// slope of the longest ones (Hill) estimates how far a maximum exceeds them.
double chance_over(std::vector<std::int64_t> runs, double limit) {
    if (runs.empty()) return 1;
    std::sort(runs.begin(), runs.end(), std::greater<>());
    const double n = static_cast<double>(runs.size()), longest = static_cast<double>(runs.front());
    if (limit <= longest) return 1 / (n + 1);
    const std::size_t top = static_cast<std::size_t>(std::ceil(std::sqrt(n)));
    double logs = 0, slope = 1;
    if (top < runs.size() && runs[top] > 0) {
        for (std::size_t i = 0; i < top; ++i)
            logs += std::log(static_cast<double>(runs[i]) / static_cast<double>(runs[top]));
        slope = logs > 0 ? static_cast<double>(top) / logs : 1e9;
    }
    return std::pow(limit / std::max(longest, 1.0), -slope) / (n + 1);
}

double soft_limit(const Evidence &seen, std::int64_t interval) {
    double soft = std::max(1.5 * static_cast<double>(interval), static_cast<double>(first_limit));
    if (!seen.counted.empty()) {
        const double margin = 1.25 + 2 / std::sqrt(static_cast<double>(seen.counted.size()));
        const double learned = static_cast<double>(seen.longest) * margin;
        // Only kills so far: the limit was too small and must not shrink.
        soft = seen.done.empty() ? std::max(soft, learned) : learned;
    }
    return std::ldexp(soft, std::min(seen.silent_kills, doublings_max));
}

std::int64_t elapsed_limit(const Evidence &seen, std::int64_t interval, const LearnBounds &bounds) {
    const double share = std::clamp(bounds.duty, 0.001, 1.0);
    const double busy = static_cast<double>(median(seen.done)) * (1 / share - 1);
    double value = std::max(static_cast<double>(interval) / 4, busy);
    if (interval > 0) value = std::min(value, 0.8 * static_cast<double>(interval));
    return nanoseconds(value, bounds.elapsed_min, bounds.elapsed_max);
}

constexpr double peak_ratio = 3;
constexpr std::size_t runs_to_see_peaks = 10;

// The runtime above which runs are peaks: after the widest relative gap in the upper fifth; 0: there is none.
std::int64_t peak_threshold(const std::vector<Sample> &samples) {
    std::vector<std::int64_t> runtimes;
    for (const Sample &sample : samples)
        if (sample.outcome == Outcome::done) runtimes.push_back(std::max<std::int64_t>(sample.runtime, 1));
    if (runtimes.size() < runs_to_see_peaks) return 0;
    std::sort(runtimes.begin(), runtimes.end());
    double widest = peak_ratio;
    std::int64_t threshold = 0;
    for (std::size_t i = runtimes.size() - runtimes.size() / 5; i + 1 < runtimes.size(); ++i) {  // two peaks at least
        const double ratio = static_cast<double>(runtimes[i]) / static_cast<double>(runtimes[i - 1]);
        if (ratio < widest) continue;
        widest = ratio;
        threshold = runtimes[i];
    }
    return threshold;
}

std::string counted(std::size_t n, const char *what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

std::string evidence_text(const Learned &learned) {
    if (learned.runs == 0 && learned.killed == 0) return "no run is recorded yet: these are the initial limits\n";
    std::string text = counted(learned.runs, "completed run") + ", the longest that counts " +
                       duration_text(learned.longest) + "; " + counted(learned.killed, "run") + " ended at the limit";
    if (learned.interval > 0) text += "; asked for every " + duration_text(learned.interval);
    return text + "\n";
}

std::string warnings(const Learned &learned) {
    std::string text;
    if (learned.starving)
        text += "starving      it was ended " + counted(learned.killed, "time") +
                " and has never completed: set a limit with -e, or find out why it does not end\n";
    if (learned.spammed)
        text += "spam          more than ten requests were refused within one ifelapsed, most of them from " +
                learned.spammer + "\n";
    return text;
}

}  // namespace

Learned learn(const std::vector<Sample> &samples, const std::vector<Denial> &denials, const LearnBounds &bounds,
              std::int64_t interval_hint, std::int64_t if_elapsed_given, std::int64_t expire_given) {
    const Evidence seen = evidence_of(samples);
    const std::vector<std::int64_t> times = request_times(samples, denials);
    const std::int64_t newest = times.empty() ? 0 : times.back();
    Learned out;
    out.runs = seen.done.size();
    out.killed = seen.killed;
    out.longest = seen.longest;
    out.interval = interval_of(times, bounds, interval_hint);
    out.starving = seen.killed >= 2 && seen.done.empty();

    out.if_elapsed = if_elapsed_given >= 0 ? if_elapsed_given : elapsed_limit(seen, out.interval, bounds);
    name_spammer(out, denials, out.if_elapsed, newest);
    if (if_elapsed_given < 0) {
        out.burst_factor = burst_factor(denials, out.if_elapsed, out.interval, newest);
        double value = static_cast<double>(out.if_elapsed) * out.burst_factor;
        const double most = 0.8 * static_cast<double>(out.interval);
        if (out.interval > 0) value = std::min(value, std::max(most, static_cast<double>(out.if_elapsed)));
        if (expire_given >= 0) value = std::min(value, static_cast<double>(expire_given) - 1);
        out.if_elapsed = nanoseconds(value, bounds.elapsed_min, bounds.elapsed_max);
    }

    out.soft = out.hard = expire_given;
    if (expire_given < 0) {
        const std::int64_t above = out.if_elapsed < bounds.expire_max ? out.if_elapsed + second : bounds.expire_max;
        const std::int64_t least = std::max(bounds.expire_min, above);
        out.soft = nanoseconds(soft_limit(seen, out.interval), least, bounds.expire_max);
        out.hard = nanoseconds(hard_over_soft * static_cast<double>(out.soft), out.soft, bounds.expire_max);
    }
    const double active = seen.done.empty() ? 0 : static_cast<double>(seen.active) / static_cast<double>(out.runs);
    out.false_kills = 1000 * (active * chance_over(seen.counted, static_cast<double>(out.hard)) +
                              (1 - active) * chance_over(seen.counted, static_cast<double>(out.soft)));
    return out;
}

std::string duration_text(std::int64_t nanoseconds) {
    if (nanoseconds == no_limit) return "never";
    struct Unit {
        double seconds;
        const char *name;
    };
    const Unit units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
    const double value = static_cast<double>(nanoseconds) / static_cast<double>(second);
    for (const Unit &unit : units) {
        if (value < 2 * unit.seconds && unit.seconds > 1) continue;
        const double tenths = std::fabs(std::ceil(value / unit.seconds * 10 - 1e-9));
        return formatted(std::fmod(tenths, 10) == 0 ? "%.0f" : "%.1f", tenths / 10) + unit.name;
    }
    return "0s";
}

Peaks peaks_of(const std::vector<Sample> &samples) {
    const std::int64_t threshold = peak_threshold(samples);
    Peaks peaks;
    if (threshold == 0) return peaks;
    std::vector<std::int64_t> gaps;
    std::int64_t last = 0, longest = 1;
    for (const Sample &sample : samples) {
        if (sample.runtime < threshold) {
            peaks.rest.push_back(sample);
            if (sample.outcome == Outcome::done) longest = std::max(longest, sample.runtime);
            continue;
        }
        if (sample.outcome != Outcome::done) continue;
        if (peaks.runs++ > 0) gaps.push_back(sample.wall - last);
        last = sample.wall;
    }
    std::sort(gaps.begin(), gaps.end());
    peaks.every = gaps[gaps.size() / 2];
    peaks.ratio = static_cast<double>(threshold) / static_cast<double>(longest);
    // Irregular peaks cannot be distinguished before they run, so a separate operand would not help.
    const double regular = static_cast<double>(gaps.back() - gaps.front());
    if (peaks.every <= 0 || regular > 0.2 * static_cast<double>(peaks.every)) return {};
    return peaks;
}

std::string advice(const std::string &name, const std::vector<Sample> &samples, const std::vector<Denial> &denials,
                   const LearnBounds &bounds, std::int64_t interval_hint) {
    const Learned learned = learn(samples, denials, bounds, interval_hint, -1, -1);
    std::string text = name + "\n";
    text += "expireafter   " + duration_text(learned.soft) + " for a run that makes no progress, " +
            duration_text(learned.hard) + " for one that does\n";
    text += "ifelapsed     " + duration_text(learned.if_elapsed);
    if (learned.burst_factor > 1)
        text += ", of that a factor of up to " + std::to_string(learned.burst_factor) + " for a burst of requests";
    text += "\nevidence      " + evidence_text(learned);
    if (learned.runs > 0)
        text += "predicted     " + formatted("%.1f", learned.false_kills) + " of 1000 good runs ended by mistake\n";
    text += warnings(learned);
    if (const Peaks peaks = peaks_of(samples); peaks.runs > 0) {
        const Learned rest = learn(peaks.rest, denials, bounds, interval_hint, -1, -1);
        text += "peaks         " + counted(peaks.runs, "run") + ", one every " + duration_text(peaks.every) +
                ", took at least " + formatted("%.0f", peaks.ratio) +
                " times as long as any other: give these runs an operand of their own, then the limit of the others "
                "is " +
                duration_text(rest.soft) + "\n";
    }
    return text + "to use it     dcs_lock -i " + duration_text(learned.if_elapsed) + " -e " +
           duration_text(learned.soft) + " ..., or -i auto -e auto to have the limits follow\n";
}

}  // namespace dcs::locks
