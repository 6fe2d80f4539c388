#pragma once
// Taking results of grains, one or many at a time. A request is repeated under its id, and gets the same answer.
#include <cstdint>
#include <string>
#include <vector>

#include "wire/form.h"

namespace dcs::wire {

struct Usage {  // of a grain, summed over its processes
    std::int64_t user_us = 0, system_us = 0;
    std::int64_t max_rss_kb = 0, minor_faults = 0, major_faults = 0, in_blocks = 0, out_blocks = 0;
    bool operator==(const Usage &) const = default;
};

struct Gwait {  // -> GrainResult, or ErrorReply nothing_yet ...
    std::int32_t session = 0;
    std::int32_t next = 0;  // index of the requested result; acknowledges all below it
    bool block = false;     // parks the request until there is an answer
    bool has_all = false;   // this run repeats an earlier one, and has the results of all grains that it has submitted
    // Failures are wanted from this index on: grains that failed below it begin again when they are submitted.
    std::int32_t failed_from = 0;
};
struct GrainResult {
    std::int32_t grain = 0, completed = 0, sent = 0;  // sent: the index after this one, which the next request names
    std::int32_t signal = 0, code = 0;
    Usage usage;
    std::uint64_t out_length = 0, err_length = 0;
    std::string out, err;       // the first 20 KiB each
    std::int32_t returned = 0;  // results up to this one; fewer than `sent` if some were killed or forgotten
};

struct GwaitMany {  // -> GrainResults, or ErrorReply as for Gwait
    std::int32_t session = 0;
    std::int32_t next = 0;         // as in Gwait
    std::int32_t most = 0;         // results at most
    bool block = false;            // until there is one
    bool has_all = false;          // as in Gwait
    std::int32_t failed_from = 0;  // likewise
};
// At least one, in the order of finishing; each as Gwait would return it.
struct GrainResults {
    std::vector<GrainResult> results;
};

// clang-format off
template <class A> void serialize(A &a, Usage &x, unsigned) {
    a & DCS_FIELD(user_us) & DCS_FIELD(system_us) & DCS_FIELD(max_rss_kb) & DCS_FIELD(minor_faults)
      & DCS_FIELD(major_faults) & DCS_FIELD(in_blocks) & DCS_FIELD(out_blocks);
}
template <class A> void serialize(A &a, Gwait &x, unsigned) {
    a & DCS_FIELD(session) & DCS_FIELD(next) & DCS_FIELD(block) & shown_since<9>(DCS_FIELD(has_all))
      & shown_since<9>(DCS_FIELD(failed_from));
}
template <class A> void serialize(A &a, GrainResult &x, unsigned) {
    a & DCS_FIELD(grain) & DCS_FIELD(completed) & DCS_FIELD(sent) & DCS_FIELD(signal) & DCS_FIELD(code) & DCS_FIELD(usage)
      & DCS_FIELD(out_length) & DCS_FIELD(err_length) & DCS_FIELD(out) & DCS_FIELD(err)
      & shown_since<9>(DCS_FIELD(returned));
}
template <class A> void serialize(A &a, GwaitMany &x, unsigned) {
    a & DCS_FIELD(session) & DCS_FIELD(next) & DCS_FIELD(most) & DCS_FIELD(block)
      & shown_since<9>(DCS_FIELD(has_all)) & shown_since<9>(DCS_FIELD(failed_from));
}
template <class A> void serialize(A &a, GrainResults &x, unsigned) { a & DCS_FIELD(results); }
// clang-format on

}  // namespace dcs::wire
