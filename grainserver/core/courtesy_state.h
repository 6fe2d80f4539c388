#pragma once
// Courtesy: the host's owner has priority. The measurements, the state derived from them, and the
// thresholds. docs/GRAIN_HOSTS.md describes the rule.
#include <cstdint>
#include <optional>
#include <string>

#include "base/instant.h"

namespace dcs::server {

// The host at one moment. Counters start at some fixed time.
struct HostSample {
    int cores = 1;
    std::int64_t busy_us = 0, total_us = 0;   // sum of all cores; busy: neither idle nor waiting for a disk
    std::int64_t yielding_us = 0;             // part of busy: programs of low priority (nice)
    std::int64_t stalled_us = -1;             // time in which a process waited for memory; negative: not known
    std::int64_t swapped_pages = 0;           // in and out
    std::int64_t memory_kb = 0, free_kb = 0;  // of the host, or of the control group with the least left; 0: not known
    std::string memory_of = "this host";
};
// The processes of one grain together.
struct GrainSample {
    std::int64_t cpu_us = 0;
    std::int64_t waited_us = -1;  // runnable without a processor; negative: not known
    bool ready = false;           // at least one process is runnable
    std::int64_t memory_kb = 0;
};

namespace courtesy {
// ---- frequency -----------------------------------------------------------------------------
// The interval is at least seconds, except for memory, which can fill faster: then up to ten times as often.
inline constexpr Duration look_soon = milliseconds(100);
// A host that is shut and runs no grain only waits for its owner to leave.
inline constexpr int slower_without_grains = 5;
// The next look comes after this fraction of the time in which the memory fills at its present rate.
inline constexpr int looks_before_full = 8;

// ---- processor -----------------------------------------------------------------------------
// A grain of lowest priority gets about 1 % beside an owner who keeps all cores busy; a grain that shares
// a core with other grains only rarely gets less than this.
inline constexpr double share_least = 0.10;
// The minimum share of time in which it was runnable: a grain that sleeps, or waits for a disk, is not starved.
inline constexpr double wanted_least = 0.5;
// Processor time left by other programs, in cores. Below the first a grain has no place; above the second it has one.
inline constexpr double room_least = 0.25, room_again = 0.5;
// A burst shorter than two slices is not worth a move: the owner is not disturbed, the grain only waits.
inline constexpr Duration patience_min = seconds(2), patience_max = seconds(60);
// Minimum time of being shut: reopening at the first quiet second would move grains to and fro.
inline constexpr Duration calm_min = seconds(4), calm_max = seconds(120);
// Time for the last checkpoint of a grain that hardly gets a processor.
inline constexpr Duration starved_checkpoint = seconds(15);

// ---- memory --------------------------------------------------------------------------------
// Each is a fraction of the whole, with an upper bound that suffices on a large host.
struct Part {
    std::int64_t divisor, most_kb;
};
inline constexpr Part low{10, 512 << 10};   // the rest must suffice for the owner's next program
inline constexpr Part gone{32, 128 << 10};  // the kernel may kill a process at any moment
inline constexpr Part tight{4, 2 << 20};    // looks become more frequent
// A grain that would fill the rest sooner than the first has no time for a checkpoint. A rate over less than the
// second may be that of a burst that is over.
inline constexpr Duration no_time = seconds(1), pace_known = milliseconds(500);
// Share of time in which processes waited for memory. At the first the host pages; below the second it does not.
inline constexpr double stalled_most = 0.20, stalled_again = 0.05;
// The same in pages swapped per second, for kernels without that figure.
inline constexpr double swapped_most = 256, swapped_again = 32;
// From the first sign to the warning (a grain that can shrink does so), and to the end of one grain.
inline constexpr Duration warn_after = seconds(1), strain_patience = seconds(3);
// Time in which a killed grain's memory is freed.
inline constexpr Duration kill_settles = seconds(2);
}  // namespace courtesy

// The state of one grain.
struct GrainCourtesy {
    std::optional<GrainSample> last;
    Duration starved{};
    bool killed = false;  // for its memory
};
// The state of the host. The durations grow while the condition holds and shrink while it does not.
struct Courtesy {
    bool on = false;
    Duration every = seconds(1);
    Instant look_at = Instant::never();
    std::optional<HostSample> last;
    Instant last_at{};
    Duration crowded{}, strained{}, calm{};
    bool warned = false;
    Instant settled_at{};  // after a kill: the earliest time of the next one
    std::string shut;      // not empty: no grain is accepted; the reason
};

}  // namespace dcs::server
