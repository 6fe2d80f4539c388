#include "held_jobs.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

#include "client/pool_path.h"
#include "commands/dcs/frame/unicode.h"
#include "locks/files/lock_search.h"
#include "process/stat.h"
#include "start_daemon.h"

namespace dcs::commands {
namespace {

constexpr int jobs_patience_s = 30;

}  // namespace

Daemon job_keeper(const Pool &pool) {
    Daemon keeper{"job", "keeper", pool.path("jobs"), pool.path("jobs/keeper.lock")};
    keeper.up = locks::is_held(keeper.lock);
    return keeper;
}

// By their logs, which are their standard output.
std::vector<std::string> waiting_submits(const Pool &pool) {
    const std::string folder = pool.directory().substr(0, pool.directory().rfind('/')) + "/dcs-submit/";
    const auto usual = client::own_pool_directory();
    std::vector<std::string> found;
    for (const int pid : numbers_in("/proc")) {
        char log[4096];
        const ssize_t n = ::readlink(("/proc/" + std::to_string(pid) + "/fd/1").c_str(), log, sizeof log);
        const std::string_view path(log, n > 0 ? static_cast<std::size_t>(n) : 0);
        if (!path.starts_with(folder) || !path.ends_with(".log")) continue;
        const std::string environment = environment_of(pid);
        const bool named = environment.find("DCS_DIR=") != std::string::npos;
        if (named ? !has_variable(environment, "DCS_DIR=" + pool.directory()) : !usual || *usual != pool.directory())
            continue;
        found.push_back("process " + std::to_string(pid) + " of session " +
                        std::string(path.substr(folder.size(), path.size() - folder.size() - 4)));
    }
    return found;
}

void resume_jobs(const Pool &pool) {
    if (::access(pool.path("jobs/jobs.db").c_str(), F_OK) != 0) return;
    const std::string jobs = own_folder() + "/../libexec/dcs/jobs";
    ::setenv("DCS_DIR", pool.directory().c_str(), 1);
    const auto ran = run_program(jobs, {"resume"}, "", jobs_patience_s);
    if (ran && ran->exit_code == 0) return;
    std::fprintf(stderr, "dcs: held jobs wait until the next squeue or qstat: %s\n",
                 printable(ran ? last_lines(ran->errors, 1) : ran.status().text).c_str());
}

}  // namespace dcs::commands
