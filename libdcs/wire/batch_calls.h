#pragma once
// One request submits many grains. It is one call: it takes effect as a whole or not at all, and is repeated under one
// request id.
#include <vector>

#include "wire/user_calls.h"

namespace dcs::wire {

struct GrainOrder {
    std::int32_t grain = 0;
    GrainSpec spec;
};
// -> Done: all of them are recorded, by this call or an earlier one. An ErrorReply refuses them all.
struct GexecMany {
    std::int32_t session = 0;
    std::vector<GrainOrder> orders;  // no grain twice
    // As in Gexec.
    bool new_demands = false, new_environment = false, again = false, from_start = false;
    bool only_failed = false, in_order = false;
};

// clang-format off
template <class A> void serialize(A &a, GrainOrder &x, unsigned) { a & DCS_FIELD(grain) & DCS_FIELD(spec); }
template <class A> void serialize(A &a, GexecMany &x, unsigned) {
    a & DCS_FIELD(session) & at_most(limits::batch_grains, DCS_FIELD(orders))
      & shown_since<9>(DCS_FIELD(new_demands)) & shown_since<9>(DCS_FIELD(new_environment))
      & shown_since<9>(DCS_FIELD(again)) & shown_since<9>(DCS_FIELD(from_start))
      & shown_since<9>(DCS_FIELD(only_failed)) & shown_since<9>(DCS_FIELD(in_order));
}
// clang-format on

}  // namespace dcs::wire
