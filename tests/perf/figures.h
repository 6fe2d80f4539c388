#pragma once
// Figures of measurements for the table of tests/perf/run: figures.py says what they mean.
#include <cstdio>
#include <cstdlib>
#include <string>

namespace dcs::perf {

// Of one round; a yardstick of 0: there is none.
inline void figure(const std::string &name, double value, double yardstick, const char *unit) {
    const char *path = std::getenv("DCS_FIGURES");
    if (!path) return;
    std::FILE *file = std::fopen(path, "a");
    if (!file) {
        std::perror(path);
        std::exit(1);
    }
    std::fprintf(file, "%s\t%.17g\t", name.c_str(), value);
    if (yardstick > 0) std::fprintf(file, "%.17g\t%s\n", yardstick, unit);
    else std::fprintf(file, "-\t%s\n", unit);
    std::fclose(file);
}

}  // namespace dcs::perf
