#pragma once
// How much work an input is, in small requests. Turns are filled, and users charged, by it.
#include <cstddef>

#include "scheduler/state/decision.h"
#include "scheduler/record/read_blob.h"

namespace dcs::turn {

// At least 1. A batch counts its grains.
std::size_t weight_of(const core::Input &input);
// And what an answer adds to that: the bytes that are read through for it, the rows and grains that it has.
std::size_t weight_of(const core::State &state, const core::Effect &answer, const record::Verified &verified);

}  // namespace dcs::turn
