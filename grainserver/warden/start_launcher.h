#pragma once
// Starts dcs_launcher: a process of its own session, which survives the server.
#include <string>

#include <sys/types.h>

#include "base/status.h"

namespace dcs::warden {

struct LauncherOptions {
    std::string program;    // path of dcs_launcher
    std::string directory;  // the server's; absolute
    std::string name;
    std::string slots;  // directory of slots; empty: the launcher's own
    bool cgroups = true;
};

class LauncherStarter {
public:
    explicit LauncherStarter(LauncherOptions options) : options_(std::move(options)) {}
    // Its output goes to DIR/launcher.log. No effect while a launcher that it started is alive.
    Status start();

private:
    const LauncherOptions options_;
    pid_t child_ = 0;
};

}  // namespace dcs::warden
