#pragma once
#include <cstdint>

namespace dcs::sim {

// From now on this bug is there (nullptr: none). The name is kept, not copied.
void plant(const char *name);
// How often its place was reached: a plant that is never reached shows nothing.
std::uint64_t plant_hits();

}  // namespace dcs::sim
