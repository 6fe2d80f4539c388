#pragma once
// Starts one daemon of a private pool: detached, output into its log, and waits until it serves.
#include <string>
#include <vector>

#include "base/status.h"

namespace dcs::commands {

struct DaemonStart {
    std::string program;                 // "dcs_scheduler", found beside this executable
    std::vector<std::string> arguments;  // without --ready-fd, which is added
    std::string directory;               // its log is directory/log
};

// Fails with the last lines of the log when the daemon ends or is not ready after `patience_s`.
Status start_daemon(const DaemonStart &start, int patience_s);

// The folder of the running executable.
std::string own_folder();
std::string last_lines(const std::string &text, int lines);

}  // namespace dcs::commands
