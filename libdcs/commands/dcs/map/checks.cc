#include "checks.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/run/placeholders.h"

namespace dcs::commands {

std::string foreign_placeholder(const MapPlan &plan) {
    for (const std::string &word : plan.command) {
        for (const char *mark : {"{..}", "{...}", "{/..}", "{/...}", "{+/}", "{+.}", "{%}", "{0#}"})
            if (word.find(mark) != word.npos)
                return mark + std::string(" is passed on as it is: dcs map replaces {} {.} {/} {//} {/.} {#}");
        const bool braces = word.size() > 2 && word.front() == '{' && word.back() == '}';
        if (braces && word.find_first_not_of("0123456789", 1) == word.size() - 1 &&
            !has_placeholder(word, plan.columns))
            return "the word " + word + " is passed on as it is: each input is one column, {} (see --colsep)";
    }
    for (std::size_t i = 0; i + 1 < plan.settings.size(); i += 2)
        if (plan.settings[i] == "env" && has_placeholder(plan.settings[i + 1], plan.columns))
            return "--env " + plan.settings[i + 1] +
                   " is passed on as it is, and the same for all; in CMD it is not: -- env " + plan.settings[i + 1] +
                   " CMD";
    return "";
}

std::string better_together(const MapPlan &plan, double cpu_s) {
    constexpr double many = 1000, short_s = 0.01;
    const auto inputs = static_cast<double>(plan.inputs.size());
    return !plan.columns && inputs >= many && cpu_s < inputs * short_s
               ? "; grains this short run faster together: -n 100 gives each 100 inputs"
               : "";
}

std::string closed_directory(const MapPlan &plan, std::int64_t uid) {
    constexpr std::size_t looked_at = 100;
    for (std::size_t i = 0; i < std::min(plan.inputs.size(), looked_at); ++i)
        for (const std::string &input : columns_of(plan.inputs[i])) {
            const std::filesystem::path path = std::filesystem::path(plan.directory) / input;
            struct stat st {};
            if (::stat(path.c_str(), &st) != 0) continue;
            for (auto above = path.parent_path(); above.has_relative_path(); above = above.parent_path())
                if (::stat(above.c_str(), &st) == 0 && (st.st_mode & 0011) == 0 && st.st_uid != uid) return above;
        }
    return "";
}

std::string left_behind(const MapPlan &plan, const FileWords &files) {
    if (!files.any() || files.by_input(plan.columns)) return "";
    int number = 0;
    for (const std::string &column : columns_of(plan.inputs[0])) {
        const std::string mark = plan.columns ? "{" + std::to_string(++number) + "}" : "{}";
        struct stat st {};
        if (!column.starts_with('/') && ::stat((plan.directory + "/" + column).c_str(), &st) == 0 &&
            S_ISREG(st.st_mode))
            return "each grain runs in a directory of its own, without the file " + printable(column) + ": --file " +
                   mark + " puts it there, as " + printable(column.substr(column.rfind('/') + 1));
    }
    return "";
}

std::string read_by_shell(const MapPlan &plan) {
    constexpr std::string_view shells[] = {"sh", "bash", "dash", "ksh", "zsh"};
    if (plan.command.size() < 3 || plan.command[1] != "-c" || !has_placeholder(plan.command[2], plan.columns))
        return "";
    const std::string name = plan.command[0].substr(plan.command[0].rfind('/') + 1);
    if (std::find(std::begin(shells), std::end(shells), name) == std::end(shells)) return "";
    for (const std::string &input : plan.inputs)
        for (const std::string &column : columns_of(input))
            if (shell_word(column) != column) return column;
    return "";
}

std::optional<Failure> check_outputs(const MapPlan &plan, const FileWords &files) {
    std::vector<std::string> paths{files.input};
    for (const auto *pairs : {&files.files, &files.outputs})
        for (const auto &[name, path] : *pairs) paths.push_back(path);
    for (const std::string &path : paths)
        if (plan.spread && path.find("{}") != std::string::npos)
            return usage_failure("dcs map: " + path + " is one file, but a grain of -n has several inputs",
                                 "{1}, {2} and so on name each, {#} is the number of the grain");
    for (const FileWords::Pair &output : files.outputs)
        if (plan.inputs.size() > 1 && !has_placeholder(output.path, plan.columns))
            return usage_failure("dcs map: --output " + output.name + ": all grains would write " + output.path,
                                 "name a place for each: --output " + output.name + "=" + output.path + ".{#}");
    return std::nullopt;
}

std::optional<Failure> check_files(const MapPlan &plan, const FileWords &files) {
    if (!files.any() && files.image.empty() && files.input.empty()) return std::nullopt;
    std::set<std::string> directories, outputs;
    std::int32_t number = 0;
    for (const std::string &input : plan.inputs) {
        const FileWords words = files.for_input(input, ++number);
        auto failure = check_places(words, directories);
        if (const std::string path = written_twice(words, outputs); !path.empty() && !failure)
            failure = usage_failure("two outputs would be written to " + path,
                                    "a place for each: {#} in PATH is the number of the input");
        if (!failure) continue;
        failure->message = "dcs map: input " + std::to_string(number) + ": " + failure->message;
        return failure;
    }
    return std::nullopt;
}

// Of this map, or one of its first inputs: an ident, and since release 0.2 how many it has.
static bool of_its_inputs(std::string_view mark, const MapPlan &plan) {
    const std::string_view ident = take_line(mark);
    const auto inputs = number_of(std::string(take_line(mark)), 0, INT32_MAX);
    return ident == ident_of(plan) || (inputs && ident == ident_of(plan, static_cast<std::size_t>(*inputs)));
}

// A file that this map would write and that it has not made before, when it had `known` inputs; empty: there is none.
static std::string taken_name(const std::string &directory, std::int64_t known, std::int64_t inputs) {
    std::error_code unread;
    for (std::filesystem::directory_iterator at(directory, unread), end; !unread && at != end; at.increment(unread)) {
        const std::string name = at->path().filename();
        const std::size_t dot = name.rfind('.');
        const auto number = number_of(name.substr(0, dot), known + 1, inputs);
        if (number && (name == std::to_string(*number) + ".out" || name == std::to_string(*number) + ".err"))
            return name;
    }
    return "";
}

std::optional<Failure> make_results(const std::string &directory, const MapPlan &plan) {
    if (directory.empty()) return std::nullopt;
    const auto wrong = [&](int error) {
        return failure_of("dcs map", fail_errno(Code::io_error, "--results " + directory, error));
    };
    std::error_code not_made;
    std::filesystem::create_directories(directory, not_made);
    if (not_made) return wrong(not_made.value());
    if (::access((directory + "/.").c_str(), W_OK | X_OK) != 0) return wrong(errno);
    const std::string mark = directory + "/.dcs-map",
                      ours = ident_of(plan) + "\n" + std::to_string(plan.inputs.size()) + "\n";
    const auto theirs = read_file(AT_FDCWD, mark, 4096);
    if (theirs && !of_its_inputs(*theirs, plan))
        return Failure{exits::refused, "refused",
                       "dcs map: --results " + directory + " has the results of a map with other words or inputs",
                       "name another directory, or remove that one"};
    if (theirs && *theirs == ours) return std::nullopt;
    std::string_view known = theirs ? *theirs : std::string_view();
    take_line(known);
    const std::string taken =
        taken_name(directory, number_of(take_line(known), 0, INT32_MAX).value_or(0), std::ssize(plan.inputs));
    if (!taken.empty())
        return Failure{exits::refused, "refused",
                       "dcs map: --results " + directory + " has a file " + taken + " that this map did not make",
                       "name another directory, or remove that file"};
    if (Status s = replace_file(AT_FDCWD, mark, ours); !s) return failure_of("dcs map: --results", s);
    return std::nullopt;
}

}  // namespace dcs::commands
