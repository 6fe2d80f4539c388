#pragma once
#include <vector>

#include "scheduler/core/decisions.h"

namespace dcs::core {

// Rows of `dcs doctor`: for each session of which grains wait that no host can ever take, as things are configured.
// Until there are `most` rows.
void add_stuck(Draft &d, const Caller &caller, std::size_t most, std::vector<wire::ProblemRow> &rows);

// Their number in one session, or of very many a smaller one.
std::int32_t stuck_for_row(const State &state, const SessionKey &key);

}  // namespace dcs::core
