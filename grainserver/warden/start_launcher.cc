#include "grainserver/warden/start_launcher.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "process/spawn.h"
#include "base/files.h"

namespace dcs::warden {

Status LauncherStarter::start() {
    if (child_ != 0 && ::waitpid(child_, nullptr, WNOHANG) == 0) return Status::ok();
    child_ = 0;
    const std::string log_name = options_.directory + "/launcher.log";
    const Fd log(::open(log_name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    SpawnRequest request;
    request.program = options_.program;
    request.arguments = {options_.program, "--dir", options_.directory, "--name", options_.name};
    if (!options_.slots.empty()) request.arguments.insert(request.arguments.end(), {"--slots-dir", options_.slots});
    if (!options_.cgroups) request.arguments.insert(request.arguments.end(), {"--cgroups", "none"});
    request.environment = current_environment();
    request.out = request.err = log.get();
    request.new_session = true;
    const Result<pid_t> child = dcs::spawn(request);
    if (!child) return child.status();
    child_ = *child;
    return Status::ok();
}

}  // namespace dcs::warden
