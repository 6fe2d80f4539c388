#pragma once
// Starting another program without copying this process (CLONE_VM | CLONE_VFORK): as quick from a
// scheduler with gigabytes of state as from an empty program.
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/status.h"

namespace dcs {

struct SpawnRequest {
    std::string program;                   // a path; PATH is not searched
    std::vector<std::string> arguments;    // argv, with argv[0]
    std::vector<std::string> environment;  // "NAME=value"; nothing else is passed on
    std::string directory;                 // to start in; empty: ours
    int in = -1, out = -1, err = -1;       // -1: /dev/null
    std::vector<int> inherit;              // kept open under their own numbers (3 and up); the rest is closed
    bool new_session = false;              // setsid: own session and process group
};

// The pid, once the program runs; the caller reaps it. A failure of any step, execve included, is
// reported here, and no child is left: Code::not_found when the program or directory is missing,
// Code::refused without permission, else Code::io_error. All signals are at their defaults and
// unblocked in the program. Thread-safe. This environment, for callers that want to pass it on:
Result<pid_t> spawn(const SpawnRequest &request);
std::vector<std::string> current_environment();

}  // namespace dcs
