#pragma once
// Ends daemons of a private pool, and grains: politely first, then for certain.
#include <string>
#include <vector>

#include "commands/dcs/frame/pool_directory.h"

namespace dcs::commands {

// SIGTERM to all, SIGKILL to those that still live after `patience_s`. A daemon is who holds its
// lock. Returns the names of those that could not be ended.
std::vector<std::string> stop_daemons(const std::vector<Daemon> &daemons, int patience_s);

// Is the daemon up, and stays so? Waits for one that is just dying (kill -9 a moment ago).
bool stays_up(const Daemon &daemon);

// KILL to every live grain process of these servers, until none is left. Number of processes
// killed; -1 if some would not go.
int end_grains(const Pool &pool, const std::vector<std::string> &servers);

}  // namespace dcs::commands
