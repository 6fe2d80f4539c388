#pragma once
// Limits learned from earlier runs: "could the values of IfElapsed and ExpireAfter be tuned automatically
// from the collective experience of the system itself?" (the paper, "Conclusions"). Pure: samples in, limits out.
#include <cstdint>
#include <string>
#include <vector>

#include "locks/files/record.h"

namespace dcs::locks {

// Bounds that the user sets on learned limits, in nanoseconds. If they contradict each other, the upper one applies.
struct LearnBounds {
    std::int64_t expire_min = 10'000'000'000, expire_max = 24LL * 3600 * 1'000'000'000;
    std::int64_t elapsed_min = 30'000'000'000, elapsed_max = 24LL * 3600 * 1'000'000'000;
    double duty = 0.5;  // at most this share of the time may be spent in the atom
};

struct Learned {
    std::int64_t soft = 0;  // expireafter for a tree without progress
    std::int64_t hard = 0;  // expireafter for a tree with progress
    std::int64_t if_elapsed = 0;
    std::size_t runs = 0;            // evidence: completed runs looked at,
    std::size_t killed = 0;          //   runs that were ended at their limit,
    std::int64_t longest = 0;        //   the longest run that counts,
    std::int64_t interval = 0;       //   median gap between requests that came alone; 0: not known
    double false_kills = 0;          // predicted, per thousand good runs
    std::uint32_t burst_factor = 1;  // the factor for a burst of refusals that if_elapsed includes
    bool starving = false;           // repeatedly ended at its limit without ever completing
    bool spammed = false;            // more than ten refusals within one ifelapsed
    std::string spammer;             // the most frequent requester: "uid 1000, command, parent 4711"
};

// `interval_hint`: the scheduling interval if the caller knows it (0: not known), used for the first runs.
// `if_elapsed_given`, `expire_given`: the other limit if it is explicit (-1: it is learned too), because
// the result keeps ExpireAfter > IfElapsed.
Learned learn(const std::vector<Sample> &samples, const std::vector<Denial> &denials, const LearnBounds &bounds,
              std::int64_t interval_hint, std::int64_t if_elapsed_given, std::int64_t expire_given);

// The report of `dcs_lock advise` on an atom: the limits that would be learned, the evidence, and the predicted error.
// It changes no limit.

// Runs that recur at regular times and take many times as long as the others. One limit cannot fit both kinds.
struct Peaks {
    std::size_t runs = 0;      // 0: there are none
    double ratio = 0;          // the shortest of them over the longest of the others
    std::int64_t every = 0;    // nanoseconds from one to the next
    std::vector<Sample> rest;  // the samples without them
};
Peaks peaks_of(const std::vector<Sample> &samples);

// "90s", "15m", "2.5h": in the syntax of the command line, rounded up to a tenth; "never" for no_limit.
std::string duration_text(std::int64_t nanoseconds);

// Several lines, each ending in a newline. `name` is the atom's name as the user wrote it.
std::string advice(const std::string &name, const std::vector<Sample> &samples, const std::vector<Denial> &denials,
                   const LearnBounds &bounds, std::int64_t interval_hint);

}  // namespace dcs::locks
