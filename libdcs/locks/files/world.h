#pragma once
// The place and time in which the locks work, passed as an argument so that tests can step clocks and simulate
// reboots.
#include <array>
#include <cstdint>
#include <string>

namespace dcs::locks {

inline constexpr std::int64_t second = 1'000'000'000;  // times are in nanoseconds here

// One reading of three clocks, in nanoseconds.
struct Moment {
    std::int64_t wall = 0;  // since 1970; may step either way. Compared only across boots
    std::int64_t mono = 0;  // CLOCK_MONOTONIC: does not step, stops in suspend. Age of a run (expiry)
    std::int64_t boot = 0;  // CLOCK_BOOTTIME: does not step, continues in suspend. Elapsed time
};

using BootId = std::array<unsigned char, 16>;

// A host during one boot, seen from one pid namespace.
class World {
public:
    virtual ~World() = default;
    virtual Moment now() const = 0;
    BootId boot{};
    std::uint64_t pid_namespace = 0;  // inode of /proc/self/ns/pid
    std::string host;                 // node name
};

// The world of this process. The test build of dcs_lock links another definition (tests/support/lock_world.cc).

const World &this_world();

}  // namespace dcs::locks
