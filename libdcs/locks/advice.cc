#include "locks/advice.h"
#include "locks/files/world.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace dcs::locks {
namespace {

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

std::string number(double value, const char *format = "%.1f") {
    char text[40];
    std::snprintf(text, sizeof text, format, value);
    return text;
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
        return number(tenths / 10, std::fmod(tenths, 10) == 0 ? "%.0f" : "%.1f") + unit.name;
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
        text += "predicted     " + number(learned.false_kills) + " of 1000 good runs ended by mistake\n";
    text += warnings(learned);
    const Peaks peaks = peaks_of(samples);
    if (peaks.runs > 0) {
        const Learned rest = learn(peaks.rest, denials, bounds, interval_hint, -1, -1);
        text += "peaks         " + counted(peaks.runs, "run") + ", one every " + duration_text(peaks.every) +
                ", took at least " + number(peaks.ratio, "%.0f") +
                " times as long as any other: give these runs an operand of their own, then the limit of the others "
                "is " +
                duration_text(rest.soft) + "\n";
    }
    return text + "to use it     dcs_lock -i " + duration_text(learned.if_elapsed) + " -e " +
           duration_text(learned.soft) + " ..., or -i auto -e auto to have the limits follow\n";
}

}  // namespace dcs::locks
