#include "grainserver/shell/host_gauge.h"

#include <cstdio>
#include <cstdlib>

namespace dcs::server {
HostFigures read_host_figures() {
    HostFigures figures;
    double loads[1] = {0};
    if (::getloadavg(loads, 1) == 1) figures.load = loads[0];
    std::FILE *f = std::fopen("/proc/meminfo", "re");
    if (f == nullptr) return figures;
    char line[256];
    while (std::fgets(line, sizeof line, f) != nullptr) {
        long kb = 0;
        if (std::sscanf(line, "MemAvailable: %ld kB", &kb) == 1) figures.free_memory_kb = kb;
    }
    std::fclose(f);
    return figures;
}
}  // namespace dcs::server
