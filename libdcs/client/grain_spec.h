#pragma once
// What a caller says about a grain, checked and copied.
#include "base/status.h"
#include "dcs.h"
#include "wire/user_calls.h"

namespace dcs::client {

// What the program describes, in a struct of this library's; and one of which nothing is said.
Result<d_grain> known_grain(const d_grain *grain);
d_grain plain_grain();

// Everything but its files (LocalFiles).
Status fill_spec(const d_grain &grain, wire::GrainSpec &spec);

}  // namespace dcs::client
