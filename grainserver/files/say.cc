#include "grainserver/files/say.h"

#include <cstdio>
#include <ctime>

namespace dcs::files {

void say(const std::string &text) {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    char time[32] = "";
    if (::gmtime_r(&now, &parts) != nullptr) std::strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%SZ ", &parts);
    std::printf("%s%s\n", time, text.c_str());
    std::fflush(stdout);
}

}  // namespace dcs::files
