#pragma once
// The only places that read clocks. Cores never include this; shells and clients do.
#include "base/instant.h"

namespace dcs {
Instant boot_clock();          // CLOCK_BOOTTIME: does not step, counts through suspend
std::int64_t wall_clock_s();   // seconds since 1970, for showing to people only
std::int64_t wall_clock_ms();  // the same in milliseconds
}  // namespace dcs
