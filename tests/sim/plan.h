#pragma once
// What a seed decides before anything happens: sizes, paces, and which faults there are and how often
// (each seed has its own few, so that combinations come up that a fixed mixture never shows).
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/instant.h"
#include "base/status.h"
#include "store/store.h"

namespace dcs::sim {

enum class Fault : std::uint8_t {
    // the scheduler
    kill,
    power,
    pause,
    disk_full,
    sync_fail,
    reread,
    // connections
    cut,
    silence,
    refuse,
    partition,
    swizzle,
    slow,
    // hosts
    server_kill,
    launcher_kill,
    reboot,
    server_pause,
    host_pause,
    away,
    lost,
    host_full,
    owner,
    no_binary,
    bad_host,
    // control programs
    control_kill,
    control_twin,
    // the backup
    backup_kill,
    backup_power,
    backup_lost,
    backup_full,
    backup_silence,
    backup_partition,
    // users: dcs grain restart --and-after
    forget,
    count
};
inline constexpr std::size_t fault_count = static_cast<std::size_t>(Fault::count);
const char *name_of(Fault fault);

struct Options {
    std::uint64_t seed = 1, seeds = 1;
    int hosts = 50, slots = 0;        // 0: drawn
    double days = 1, interval_s = 0;  // 0: drawn
    std::int64_t grains = 0;          // 0: drawn
    int jobs = 1;
    double seconds = 0;  // begin no further seed after so long; 0: no limit
    std::string faults = "all", plant;
    bool contents = false;   // grains have files
    bool backup = false;     // there is a passive backup
    bool forget = false;     // users forget results
    bool brief = false;      // grains take a second at most
    bool queues = false;     // launchers take grains beyond their slots
    bool resources = false;  // hosts and the pool have named resources, and grains demand some
    bool trace = false, scale_table = false, quiet = false, hash = false;
    std::string command;  // as it was given, without seeds
};
// Exits with a message when the line is not understood.
Options read_options(int argc, char **argv);

struct Plan {
    std::uint64_t seed = 1;
    Duration length{}, interval{}, alert{}, limit{}, extended{};
    int hosts = 0, slots = 0, users = 1, programs = 1, classes = 1;
    std::int64_t grains = 0;
    Duration grain_cpu_max{};
    bool contents = false;  // some grains have their input, files and outputs in the library
    bool backup = false;
    std::uint64_t backup_bytes = 0;  // that it may hold
    bool queues = false;             // launchers take grains beyond their slots
    bool resources = false;          // named ones, which grains demand
    bool scale = false;              // nothing but the core's work is of interest
    // paces
    Duration delay_min{}, delay_max{};  // of a message
    Duration commit_min{}, commit_max{};
    Duration drowse{};     // a grain server looks at its running grains this late
    Duration keepalive{};  // a silent connection is given up
    store::StoreOptions store;
    // mean time between two faults of a kind in the whole pool; zero: none
    std::array<Duration, fault_count> every{};
    bool has(Fault f) const { return every[static_cast<std::size_t>(f)].ns > 0; }
    std::string text() const;
};

// Fails when a fault is not known.
Result<Plan> make_plan(const Options &options, std::uint64_t seed);
// No faults, no checkers: enough work to fill the pool for most of the time.
Plan scale_plan(const Options &options);

// Bit of StoreOptions::plant by its name; 0 if it is none of them.
std::string_view store_plant(const std::string &name);
std::vector<std::string> store_plants();

}  // namespace dcs::sim
