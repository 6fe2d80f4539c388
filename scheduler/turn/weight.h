#pragma once
// How much work an input is, in small requests. Turns are filled, and users charged, by it.
#include <cstddef>

#include "scheduler/core/input.h"

namespace dcs::turn {

// At least 1. A batch counts its grains, a page of an export those that it may have.
std::size_t weight_of(const core::Input &input);

}  // namespace dcs::turn
