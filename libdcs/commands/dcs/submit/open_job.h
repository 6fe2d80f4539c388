#pragma once
// Which session a `dcs submit` works in: a new one, or one of an earlier run of the same job.
#include <optional>
#include <string>
#include <vector>

#include "commands/dcs/frame/call.h"
#include "work.h"

namespace dcs::commands {

struct Job {
    std::string name, place, ident, directory;  // of the file; which one it is, 4 hex digits; of its sessions; ours
    JobFile file;
    std::vector<JobPart> parts;
    std::vector<MapFile> files;
};

struct OpenedJob {
    int session = 0;
    bool complete = false;                         // all succeeded in an earlier run
    std::string how, changed, other, environment;  // changed: a file, for people; other: an earlier session
    std::optional<Failure> failure;
};

// In the environment of a process that goes on with the --session that another one has just opened: what fails
// meanwhile does not begin again.
inline constexpr const char *goes_on_variable = "DCS_GOES_ON";

// Takes --new and --session of the call.
OpenedJob open_job(const Call &call, const Job &job, Console &console);

Failure errors_in_file(const std::vector<std::string> &errors, const char *hint = "");
// Of what fails once the session is there: what can be done with it.
Failure with_new_hint(Failure failure, int session);

}  // namespace dcs::commands
