#pragma once
// Limits learned from earlier runs: "could the values of IfElapsed and ExpireAfter be tuned automatically
// from the collective experience of the system itself?" (the paper, "Conclusions"). Pure: samples in, limits out.
#include <cstdint>
#include <string>
#include <vector>

#include "locks/files/sample.h"

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

}  // namespace dcs::locks
