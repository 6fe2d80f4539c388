#pragma once
// What to do when the scheduler of a pool does not answer.
#include <string>

namespace dcs::commands {

// The packages' daemons as services of this host (deploy/systemd), by what lies in the file system.

// Where they keep their data: scheduler, server, backup.
inline constexpr const char *services_place = "/var/lib/dcs";

// Of the file that `dcs host join` writes for a unit, or for a pilot; empty: there is none, or it may not be read.
std::string scheduler_in(const std::string &file);

// Does this host's systemd have that unit ("dcs-scheduler")?
bool has_service(const std::string &unit);

// By the lock of a daemon's directory.
bool daemon_runs_in(const std::string &directory);

// What this host is to a pool whose scheduler is on another one: "this host runs grains for the pool at sched:7001".
// Empty: nothing. Who may not read the address gets the sentence without it.
std::string part_in_far_pool();

// By what lies there: whether there is a pool, who made it, and whether the caller may call there at all. Never a
// command that would change the pool's size or its owner.
std::string start_hint(const std::string &directory);
// Of the user's own pool, on a host that has one for all: how commands use that. Else empty.
std::string other_pool(const std::string &directory);

}  // namespace dcs::commands
