#pragma once
// This host, but with clocks that a test steps, and another boot or host where it says so.
#include "locks/files/world.h"

namespace scratch {

using dcs::locks::second;
constexpr std::int64_t ms = second / 1000, s = second, minute = 60 * s, hour = 60 * minute, day = 24 * hour;

class SteppedWorld : public dcs::locks::World {
public:
    SteppedWorld() {
        boot = dcs::locks::this_world().boot;
        pid_namespace = dcs::locks::this_world().pid_namespace;
        host = dcs::locks::this_world().host;
    }
    dcs::locks::Moment now() const override {
        dcs::locks::Moment m = dcs::locks::this_world().now();
        return {m.wall + wall, m.mono + mono, m.boot + uptime};
    }
    void pass(std::int64_t nanoseconds) { wall += nanoseconds, mono += nanoseconds, uptime += nanoseconds; }
    void reboot(std::int64_t nanoseconds) {  // the machine was off for that long
        wall += nanoseconds;
        boot[0] = static_cast<unsigned char>(boot[0] + 1);
        const dcs::locks::Moment m = dcs::locks::this_world().now();
        mono = uptime = 20 * second - m.boot;
    }
    std::int64_t wall = 0, mono = 0, uptime = 0;  // added to the real clocks
};

}  // namespace scratch
