#pragma once
// The batch engine of a cluster, as pilots need it. Another engine is another implementation of these calls, and a row
// of the table in engines.cc.
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace dcs::commands {

struct EngineJob {
    std::string id, name, node;
    std::string state;   // in the engine's words: PENDING, RUNNING
    std::string reason;  // why it waits; may be empty
    double used_s = 0;   // since it started
    double left_s = -1;  // to its limit; -1: not known
    bool waits = false;  // it has not started
    bool held = false;   // it waits, and does not start before someone releases it
    bool over = false;   // its processes are gone, or cut off; only the engine has not cleaned up after it
};

struct JobOrder {
    std::string name, script, log;  // script: a file, which appends to the log what the job says
    double limit_s = 0, margin_s = 0;
    int cores = 1;
    std::vector<std::string> options;  // the user's, in the engine's form
};

class Engine {
public:
    virtual ~Engine() = default;
    virtual Status usable() = 0;  // its commands are here
    // Of the user's options one that `submit` sets itself; empty: none.
    virtual std::string own_option_in(const std::vector<std::string> &options) const = 0;
    // This user's jobs that wait, run or are ending, whose names begin with `prefix`.
    virtual Result<std::vector<EngineJob>> list(const std::string &prefix) = 0;
    virtual Result<std::string> submit(const JobOrder &order) = 0;  // the job's id
    // Asks a running one to end by itself, and signals no grain.
    virtual Status ask_to_end(const EngineJob &job) = 0;
    virtual Status cancel(const EngineJob &job) = 0;
};

// `directory`: of the pool's pilots (place.h).
std::unique_ptr<Engine> slurm(const std::string &directory);
std::unique_ptr<Engine> pbs(const std::string &directory);
std::unique_ptr<Engine> condor(const std::string &directory);

struct EngineKind {
    const char *name;    // as in `dcs pilot NAME`
    const char *title;   // "Slurm"
    const char *submit;  // "sbatch"
    std::unique_ptr<Engine> (*make)(const std::string &directory);
};
const EngineKind *engine_kind(std::string_view name);

// For each of its commands, some of which wait for a controller that does not answer.
inline constexpr int engine_patience_s = 60;
// The output of one of an engine's commands, or what it said instead.
Result<std::string> engine_says(const char *title, const std::string &program,
                                const std::vector<std::string> &arguments);
// The id of a new job as each prints it, whatever a site's greeting says before. Code::refused: there is none in it.
Result<std::string> job_of_sbatch(const std::string &output);
Result<std::string> job_of_qsub(const std::string &output);
Result<std::string> job_of_condor_submit(const std::string &output);
// Of `options`, one of `own`; in these -N stands for -Nvalue too, and --name for --name=value.
std::string option_among(const std::vector<const char *> &own, const std::vector<std::string> &options);

// "1-02:03:04", "2:03:04", "3:04"; -1 for what is no time.
double seconds_of_slurm(std::string_view text);
std::string slurm_time(double seconds);  // rounded up to whole minutes, as Slurm does

// What `qstat -f` of OpenPBS, PBS Professional or Torque prints. `now`: of the clock, for how long a job runs.
std::vector<EngineJob> jobs_of_qstat(std::string_view text, std::time_t now);
std::string pbs_time(double seconds);
// Lines of `condor_q -af:t` with the attributes that condor.cc asks for.
std::vector<EngineJob> jobs_of_condor(std::string_view text);

}  // namespace dcs::commands
