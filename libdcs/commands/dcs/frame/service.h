#pragma once
// The packages' daemons as services of this host (deploy/systemd), by what lies in the file system.
#include <optional>
#include <string>

namespace dcs::commands {

// Where they keep their data: scheduler, server, backup.
inline constexpr const char *services_place = "/var/lib/dcs";

// Does this host's systemd have that unit ("dcs-scheduler")?
bool has_service(const std::string &unit);

// By the lock of a daemon's directory.
bool daemon_runs_in(const std::string &directory);

// What this host is to a pool whose scheduler is on another one: "this host runs grains for the pool at sched:7001".
// Empty: nothing. Who may not read the address gets the sentence without it.
std::string part_in_far_pool();

}  // namespace dcs::commands
