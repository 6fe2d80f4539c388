#pragma once
// Starts one daemon of a private pool: detached, output into its log, and waits until it serves.
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/program_start.h"
#include "base/status.h"
#include "commands/dcs/frame/pool_directory.h"

namespace dcs::commands {

struct DaemonStart {
    std::string program;                 // "dcs_scheduler", found beside this executable
    std::vector<std::string> arguments;  // without --ready-fd, which is added
    std::string directory;               // its log is directory/log
};

// Fails with the last lines of the log when the daemon ends. A signal that asks this process to end, and is
// blocked, ends the daemon too.
Status start_daemon(const DaemonStart &start);
// SIGTERM to a child of this process, SIGKILL after a while. Its status.
int end_child(pid_t child);

// Runs a program to its end: with a slash in its name that file, else as the shell finds it. Without the last newlines.
struct Ran {
    int exit_code = 0;
    std::string output, errors;  // what it said on either stream
};
// With a patience it is killed after so long, or when a blocked signal asks this process to end, and the call fails.
Result<Ran> run_program(const std::string &program, const std::vector<std::string> &arguments,
                        const std::string &input = "", int patience_s = 0);
// A program beside this executable; output: what it said on both streams.
Result<Ran> run_to_end(const std::string &program, const std::vector<std::string> &arguments);

// Says of the file system where `path` is, or would be, that a daemon has no room there; empty: it has some.
std::string full_disk_text(std::string path);
std::string last_lines(const std::string &text, int lines);

// Processes beside a private pool that submit its grains later. The keeper holds jobs of sbatch and qsub
// (libdcs/python/dcs/jobs/holding.py).
Daemon job_keeper(const Pool &pool);
// Starts it where jobs are held, as `dcs down` or a reboot left them; says on standard error if that fails.
void resume_jobs(const Pool &pool);
// What `dcs submit` left in the background for this pool: "process 17 of session 3".
std::vector<std::string> waiting_submits(const Pool &pool);

}  // namespace dcs::commands
