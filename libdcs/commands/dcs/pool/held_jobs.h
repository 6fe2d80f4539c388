#pragma once
// Processes beside a private pool that submit its grains later. The keeper holds jobs of sbatch and qsub
// (libdcs/python/dcs/jobs/holding.py).
#include <string>
#include <vector>

#include "commands/dcs/frame/pool_directory.h"

namespace dcs::commands {

Daemon job_keeper(const Pool &pool);
// Starts it where jobs are held, as `dcs down` or a reboot left them; says on standard error if that fails.
void resume_jobs(const Pool &pool);
// What `dcs submit` left in the background for this pool: "process 17 of session 3".
std::vector<std::string> waiting_submits(const Pool &pool);

}  // namespace dcs::commands
