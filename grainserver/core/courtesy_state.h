#pragma once
// Courtesy: the host's owner comes first. What is looked at, what is remembered of it, and the figures by
// which it is judged. docs/COURTESY.md has the rule in words.
#include <cstdint>
#include <optional>
#include <string>

#include "base/instant.h"

namespace dcs::server {

// The host at one moment; what counts up counts since some moment that does not change.
struct HostSample {
    int cores = 1;
    std::int64_t busy_us = 0, total_us = 0;  // of all cores together; busy: neither idle nor waiting for a disk
    std::int64_t yielding_us = 0;            // part of busy: of programs that gave way to others (nice)
    std::int64_t stalled_us = -1;            // at least one process waited for memory; negative: not told
    std::int64_t swapped_pages = 0;          // in and out
    std::int64_t memory_kb = 0, free_kb = 0; // of the host, or of the control group that has least left; 0: not told
    std::string memory_of = "this host";
};
// The processes of one grain together.
struct GrainSample {
    std::int64_t cpu_us = 0;
    std::int64_t waited_us = -1;             // they wanted to run and had no processor; negative: not told
    bool ready = false;                      // one of them wants to run just now
    std::int64_t memory_kb = 0;
};

namespace courtesy {
// ---- how often -----------------------------------------------------------------------------
// Seconds matter to nobody but memory, which can be filled in less: then up to ten times as often.
inline constexpr Duration look_soon = milliseconds(100);
// A host that is shut and runs nothing only waits for its owner to leave.
inline constexpr int slower_without_grains = 5;
// The next look comes after this part of the time that the memory lasts at its present pace.
inline constexpr int looks_before_full = 8;

// ---- processor -----------------------------------------------------------------------------
// A grain of lowest priority beside an owner who keeps all cores busy gets about 1 %; one that shares
// a core with other grains only, rarely less than this.
inline constexpr double share_least = 0.10;
// It wanted to run at least so much of the time: one that sleeps, or waits for a disk, is not shut out.
inline constexpr double wanted_least = 0.5;
// Cores that others leave, in cores. Below the first a grain has no place; above the second it has one.
inline constexpr double room_least = 0.25, room_again = 0.5;
// A burst shorter than two slices is not worth a move: nobody is disturbed, the grain only waits.
inline constexpr Duration patience_min = seconds(2), patience_max = seconds(60);
// Shut for at least so long: coming back at the first quiet second would carry grains to and fro.
inline constexpr Duration calm_min = seconds(4), calm_max = seconds(120);
// For the last checkpoint of a grain that hardly gets a processor.
inline constexpr Duration starved_checkpoint = seconds(15);

// ---- memory --------------------------------------------------------------------------------
// Of each: a part of the whole, but no more than so much, which is enough to go on with on a large host.
struct Part { std::int64_t divisor, most_kb; };
inline constexpr Part low{10, 512 << 10};    // what is left must do for the owner's next program
inline constexpr Part gone{32, 128 << 10};   // the kernel may look for somebody to kill at any moment
inline constexpr Part tight{4, 2 << 20};     // worth looking at more often
// A grain that would fill what is left sooner has no time for a checkpoint. The pace of a longer look than the
// second may be that of one burst, which is over.
inline constexpr Duration no_time = seconds(1), pace_known = milliseconds(500);
// Processes waited for memory so much of the time: the host pages. The second: it does not any more.
inline constexpr double stalled_most = 0.20, stalled_again = 0.05;
// Where the kernel does not tell that: pages swapped per second.
inline constexpr double swapped_most = 256, swapped_again = 32;
// From the first sign to the warning (a grain that can shrink does so), and to the end of one grain.
inline constexpr Duration warn_after = seconds(1), strain_patience = seconds(3);
// What was killed frees its memory within.
inline constexpr Duration kill_settles = seconds(2);
}  // namespace courtesy

// Remembered of one grain.
struct GrainCourtesy {
    std::optional<GrainSample> last;
    Duration starved{};
    bool killed = false;                     // for its memory
};
// And of the host. The durations grow while it is so and shrink while it is not.
struct Courtesy {
    bool on = false;
    Duration every = seconds(1);
    Instant look_at = Instant::never();
    std::optional<HostSample> last;
    Instant last_at{};
    Duration crowded{}, strained{}, calm{};
    bool warned = false;
    Instant settled_at{};                    // after a kill: nobody else is killed before
    std::string shut;                        // not empty: no grain is taken, and why
};

}  // namespace dcs::server
