#pragma once
// Starts the command of a run as a shell would, apart from what the run adds.
#include <csignal>
#include <string>
#include <vector>

#include <sys/types.h>

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

}  // namespace dcs::locks
