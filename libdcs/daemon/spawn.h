#pragma once
// Starting a program from a daemon: posix_spawn, never fork from a process that may be fat.
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/status.h"

namespace dcs::daemon {

struct SpawnRequest {
    std::string path;
    std::vector<std::string> argv;      // argv[0] included
    std::vector<std::string> env;       // used only if replace_env
    bool replace_env = false;           // false: the child gets ours
    int in = -1, out = -1, err = -1;    // -1: /dev/null
    bool new_session = true;            // setsid
};

// Pid of the child. It has default signal dispositions, an empty mask, and no descriptor of ours
// but the three. The caller reaps it (or ignores SIGCHLD).
Result<pid_t> spawn(const SpawnRequest &request);

}  // namespace dcs::daemon
