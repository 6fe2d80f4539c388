#pragma once
// What a caller says about a grain, checked and copied.
#include "base/status.h"
#include "dcs.h"
#include "wire/user_calls.h"

namespace dcs::client {

// A scheduler may say that it lacks contents so often: what was brought may be found damaged a moment later, or be
// another scheduler's.
inline constexpr int most_submissions = 4;

// Everything but its files (LocalFiles).
Status fill_spec(const d_grain &grain, wire::GrainSpec &spec);

}  // namespace dcs::client
