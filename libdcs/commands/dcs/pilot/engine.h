#pragma once
// The batch engine of a cluster, as pilots need it. Another engine is another implementation of these calls.
#include <memory>
#include <string>
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
    bool over = false;   // its processes are gone, or cut off; only the engine has not cleaned up after it
};

struct JobOrder {
    std::string name, script, log;  // script: a file
    double limit_s = 0, margin_s = 0;
    int cores = 1;
    std::vector<std::string> options;  // the user's, in the engine's form
};

class Engine {
public:
    virtual ~Engine() = default;
    virtual Status usable() = 0;  // its commands are here
    // This user's jobs that wait, run or are ending, whose names begin with `prefix`.
    virtual Result<std::vector<EngineJob>> list(const std::string &prefix) = 0;
    virtual Result<std::string> submit(const JobOrder &order) = 0;  // the job's id
    // Asks a running one to end by itself: SIGTERM to what it began with, and to no other process of it.
    virtual Status ask_to_end(const EngineJob &job) = 0;
    virtual Status cancel(const EngineJob &job) = 0;
};

std::unique_ptr<Engine> slurm();

// "1-02:03:04", "2:03:04", "3:04"; -1 for what is no time.
double seconds_of_slurm(std::string_view text);
std::string slurm_time(double seconds);  // rounded up to whole minutes, as Slurm does

}  // namespace dcs::commands
