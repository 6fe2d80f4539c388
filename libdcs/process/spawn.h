#pragma once
// Starting another program without copying this process: as quick from a scheduler with gigabytes of state as from an
// empty program.
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/status.h"

namespace dcs {

struct SpawnRequest {
    std::string program;                   // with a slash in its name that file, else as the shell finds it
    std::vector<std::string> arguments;    // argv, with argv[0]
    std::vector<std::string> environment;  // "NAME=value"; nothing else is passed on
    std::string directory;                 // to start in; empty: ours
    int in = -1, out = -1, err = -1;       // -1: /dev/null
    std::vector<int> inherit;              // become 3, 4 and so on
    bool keeps_others = false;             // what is open above them, but for what closes on exec; else all is closed
    bool new_session = false;              // setsid, and all signals at their defaults and unblocked
};

// The pid, once the program runs; the caller reaps it. A failure of any step, execve included, is
// reported here, and no child is left: Code::not_found when the program or directory is missing,
// else Code::io_error. Thread-safe. This environment, for callers that want to pass it on:
Result<pid_t> spawn(const SpawnRequest &request);
std::vector<std::string> current_environment();

// For a process that was forked: of what is open above the standard streams only these stay.
void keep_descriptors(std::vector<int> kept);

}  // namespace dcs
