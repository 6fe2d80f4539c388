#include "start_options.h"

#include <map>

#include "base/limits.h"
#include "caller_environment.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/this_pool.h"
#include "commands/dcs/query/scheduler.h"
#include "placeholders.h"

namespace dcs::commands {

OptionTable with_start(OptionTable options) {
    const OptionRow rows[] = {
        {"cwd", 0, "DIR", some_text, "CMD runs in DIR instead of the current directory", "How it starts"},
        {"env", 0, "NAME=VALUE", some_text, "with this variable in its environment", "", Given::many},
        {"dry-run", 0, nullptr, {}, "print the commands that would run, as a shell takes them, and run nothing"},
        {"detach",
         0,
         nullptr,
         {},
         "submit the work, print the number of its session, and return; `dcs session wait` waits for it,\n"
         "`dcs session cat` prints its outputs"},
        {"label", 0, "TEXT", some_text, "a label for the session, shown by `dcs session ls`"},
        {"nice", 0, "N", whole_number(0, wire::most_nice),
         "let less nice sessions of all users go first (0, the default, to 19)"}};
    options.insert(options.end(), std::begin(rows), std::end(rows));
    return options;
}

Result<std::string> start_directory(const Arguments &arguments) {
    const auto said = arguments.value("cwd");
    return said ? Result<std::string>(absolute_path(*said)) : current_directory();
}

std::optional<Failure> set_variables(const Arguments &arguments, const std::string &directory,
                                     std::vector<std::string> &environment) {
    std::map<std::string, std::string> all;
    for (const std::string &entry : environment) all[entry.substr(0, entry.find('='))] = entry;
    if (arguments.has("cwd")) all["PWD"] = "PWD=" + directory;
    for (const auto &[option, value] : arguments.options) {
        if (option != "env") continue;
        const std::size_t equals = value.find('=');
        if (equals == std::string::npos || equals == 0)
            return usage_failure("--env " + value + ": a name and a value, as in --env OMP_NUM_THREADS=4");
        all[value.substr(0, equals)] = value;
    }
    environment.clear();
    for (const auto &[name, entry] : all) environment.push_back(entry);
    return std::nullopt;
}

std::optional<Failure> describe_session(const Arguments &arguments) {
    const std::string label = arguments.value("label").value_or("");
    if (label.size() > limits::label_bytes)
        return usage_failure("--label: at most " + std::to_string(limits::label_bytes) + " bytes, these are " +
                             std::to_string(label.size()));
    describe_new_sessions(label, static_cast<std::int32_t>(arguments.number("nice").value_or(0)));
    return std::nullopt;
}

}  // namespace dcs::commands
