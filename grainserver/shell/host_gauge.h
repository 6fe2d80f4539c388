#pragma once
// What the host says about itself: load average of a minute, memory that is free or could be freed.
#include <cstdint>

namespace dcs::server {
struct HostFigures { double load = 0; std::int64_t free_memory_kb = 0; };
HostFigures read_host_figures();
}  // namespace dcs::server
