#pragma once
// Options of `dcs run` and `dcs map` about where a command starts, and what is said of its session.
#include <optional>
#include <string>
#include <vector>

#include "base/option_table.h"
#include "commands/dcs/frame/call.h"

namespace dcs::commands {

// The options of the verb, then these.
OptionTable with_start(OptionTable options);

// --cwd as an absolute path, else the current directory.
Result<std::string> start_directory(const Arguments &arguments);
// Puts --env into a list as of caller_environment.h, and with --cwd PWD.
std::optional<Failure> set_variables(const Arguments &arguments, const std::string &directory,
                                     std::vector<std::string> &environment);
// --label and --nice, for the sessions that are opened from here on.
std::optional<Failure> describe_session(const Arguments &arguments);

}  // namespace dcs::commands
