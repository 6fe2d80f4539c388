#pragma once
// What the scheduler's work costs when the pool is large: no faults, no checkers, a disk in memory.
#include "sim/plan.h"

namespace dcs::sim {

// Many hosts or grains and no faults: figures are wanted, not checks.
bool is_scale_run(const Options &options);
int scale_run(const Options &options);
int scale_table(const Options &options);

}  // namespace dcs::sim
