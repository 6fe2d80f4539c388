#pragma once
// Starts the command of a run just as a shell would, apart from what the run adds.
#include <csignal>
#include <string>
#include <vector>

#include <sys/types.h>

#include "locks/supervision.h"

namespace dcs::locks {

struct SpawnPlan {
    const Supervision *what = nullptr;
    std::vector<std::string> environment;  // on top of ours
    std::string leaf;                      // control group to start in; empty: ours
    bool own_group = false;                // a process group of its own
    bool die_with_us = false;
    bool hand_on_locks = true;
    sigset_t mask = {};                    // the caller's before it blocked signals
    struct sigaction child_action = {};    // what it did about SIGCHLD
};

// Close-on-exec copies would be lost: copies of `fds` at high numbers, which stay. False with errno.
bool hand_on(const std::vector<int> &fds);
// The whole environment with `more` on top, and pointers into it.
struct Environment {
    explicit Environment(const std::vector<std::string> &more);
    std::vector<std::string> texts;
    std::vector<char *> pointers;
};
std::vector<char *> pointers_to(std::vector<std::string> &texts);
// execvpe; 126 or 127, and why.
int status_of_exec(int error);

struct Spawned {
    pid_t pid = -1;
    int error = 0;             // of exec, or of the system call that failed before it
    const char *step = "";     // which
    bool in_leaf = false;
};
// Returns when the command has been executed, or could not be.
Spawned spawn(const SpawnPlan &plan);

}  // namespace dcs::locks
