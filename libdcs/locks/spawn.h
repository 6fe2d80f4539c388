#pragma once
// Starts the command of a run as a shell would, apart from what the run adds.
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "locks/files/record.h"
#include "locks/run_tree.h"
#include "locks/supervision.h"

namespace dcs::locks {

struct SpawnPlan {
    const Supervision *what = nullptr;
    std::vector<std::string> environment;  // added to the caller's
    std::string leaf;                      // control group to start in; empty: the caller's
    bool own_group = false;                // a process group of its own
    bool die_with_us = false;
    bool hand_on_locks = true;
    sigset_t mask = {};                  // the caller's before it blocked signals
    struct sigaction child_action = {};  // the caller's for SIGCHLD
};

// Duplicates the close-on-exec `fds` at high numbers, where exec keeps them. False with errno.
bool hand_on(const std::vector<int> &fds);
// The caller's environment with `more` added, and pointers to it.
struct Environment {
    explicit Environment(const std::vector<std::string> &more);
    std::vector<std::string> texts;
    std::vector<char *> pointers;
};
// Makes a forked process a keeper of locks: of what the caller had open it holds nothing but `kept`.
void leave_the_caller(std::vector<int> kept);
// The exit status for an error of execvpe: 126 or 127.
int status_of_exec(int error);

struct Spawned {
    pid_t pid = -1;
    int error = 0;          // of exec, or of the system call that failed before it
    const char *step = "";  // the name of that system call
    bool in_leaf = false;
};
// Returns after the command has been executed, or could not be.
Spawned spawn(const SpawnPlan &plan);

// The limit of a run: a tree without progress in the last third of its life is ended at the soft limit. A tree that
// used CPU or did I/O continues and is checked again, up to the hard limit.
struct Usage {
    std::int64_t cpu = 0;  // nanoseconds, of all processors
    std::int64_t io = 0;   // bytes read and written, pipes and sockets included
    bool wants = false;    // a process is runnable; on a busy host it may wait long for a processor
};
// Of the tree's running processes, and of the children that the caller has waited for.
Usage usage_of(RunTree &tree);

class LifeLimit {
public:
    LifeLimit(std::int64_t soft, std::int64_t hard);
    // Age of the next check; no_limit: never.
    std::int64_t next() const { return next_; }
    // The check at that age. True: the run is to be ended.
    bool over(std::int64_t age, const Usage &usage);
    bool progressing() const { return progressing_; }

private:
    std::int64_t soft_, hard_, next_, last_age_ = 0;
    Usage last_;
    bool progressing_ = false;
};

}  // namespace dcs::locks
