#pragma once
// What a grain gets from the caller of `dcs run` and `dcs map`: program path, environment,
// directory.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/option_table.h"
#include "commands/dcs/frame/call.h"

namespace dcs::commands {

// Absolute path of the program, as a shell finds it. Code::not_found: there is none; Code::refused:
// it exists, but not executable.
Result<std::string> find_program(const std::string &name, const std::string &search_path, const std::string &directory);

// What is lost where a script of another batch system, of this text, is run as a program; empty: nothing.
std::string batch_lines_hint(std::string_view script);
std::string batch_lines_of(const std::string &program);  // the same of a file, with its name

Result<std::string> current_directory();

// NAME=value of the caller, without what belongs to DCS itself; sorted, each name once. DCS_DIR is `pool`, unless that
// is empty.
std::vector<std::string> whole_environment(char **environment, const std::string &pool);
// The same without what differs between two terminals of one user though nothing is meant by it
// (OLDPWD, SSH_..., WINDOWID); PWD is the directory. A rerun of `dcs map` must find its grains
// equal.
std::vector<std::string> steady_environment(char **environment, const std::string &pool, const std::string &directory);
// For either of them: the caller's umask, DCS_UMASK=0022, which the grain gets.
void add_umask(std::vector<std::string> &environment);
bool is_volatile(std::string_view name);
// "HOME, PATH and 2 more": what two such lists do not have in common. No values, which may be secret.
std::string variables_that_differ(const std::vector<std::string> &before, const std::vector<std::string> &now);
// The same of variables that both have, with other values; not of those that differ between logins, terminals and jobs.
std::string changed_values(const std::vector<std::string> &before, const std::vector<std::string> &now);
// Two such lists, but for those variables: with the same variables; with some that only one has; with other values, of
// the variables that changed_values() names.
enum class Alike : std::uint8_t { same, some_added, other_values };
struct Likeness {
    Alike how = Alike::same;
    std::string changed;
};
Likeness likeness(const std::vector<std::string> &before, const std::vector<std::string> &now);

// Options of `dcs run` and `dcs map` about where a command starts, and what is said of its session.

// The options of the verb, then these.
OptionTable with_start(OptionTable options);

// --cwd as an absolute path, else the current directory.
Result<std::string> start_directory(const Arguments &arguments);
// Code::not_found also where no host of the pool has it.
Result<std::string> start_directory(const Call &call);
// Puts --env into a list as of caller_environment.h, and with --cwd PWD.
std::optional<Failure> set_variables(const Arguments &arguments, const std::string &directory,
                                     std::vector<std::string> &environment);
// --label and --nice, for the sessions that are opened from here on.
std::optional<Failure> describe_session(const Arguments &arguments);

}  // namespace dcs::commands
