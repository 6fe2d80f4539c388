// From the tables of a job file to what is submitted.
#include <map>
#include <set>
#include <unistd.h>

#include "base/bytes.h"
#include "base/text.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/run/caller_environment.h"
#include "commands/dcs/run/demand_options.h"
#include "commands/dcs/run/placeholders.h"
#include "pki/digest.h"
#include "work.h"

extern char **environ;

namespace dcs::commands {
namespace {

constexpr std::size_t most_input = 64u << 20;

std::optional<Failure> prepare_part(const JobGrain &grain, const std::string &pool_directory, JobPart &part) {
    if (auto failure = take_demands(grain.options, part.demands)) return failure;
    if (auto failure = take_file_words(grain.options, part.files, grain.many)) return failure;
    part.files.input = grain.input_path;
    const auto directory = start_directory(grain.options);
    if (!directory) return failure_of("", directory.status());
    part.directory = *directory;
    part.environment = steady_environment(environ, pool_directory, part.directory);
    add_umask(part.environment);
    if (auto failure = set_variables(grain.options, part.directory, part.environment)) return failure;
    const auto program = program_of(part.files, false, grain.command[0], part.directory);
    if (!program) return failure_of("", program.status());
    part.program = *program;
    for (FileWords::Pair &output : part.files.outputs)
        if (output.path[0] != '/') output.path = part.directory + "/" + output.path;
    for (const FileWords::Pair &output : part.files.outputs)
        if (grain.many && !has_placeholder(output.path))
            return usage_failure("output " + output.name + ": all grains would write " + output.path +
                                 "; name a place for each, such as " + output.path + ".{#}");
    return std::nullopt;
}

std::string error_of(const JobGrain &grain, const Failure &failure) {
    return grain.place + ": grain " + grain.name + ": " + failure.message;
}

}  // namespace

std::vector<JobPart> prepare_job(const JobFile &file, const std::string &pool_directory,
                                 std::vector<std::string> &errors) {
    std::vector<JobPart> parts(file.grains.size());
    for (std::size_t i = 0; i < parts.size(); ++i)
        if (const auto failure = prepare_part(file.grains[i], pool_directory, parts[i]))
            errors.push_back(error_of(file.grains[i], *failure));
    return parts;
}

std::string ident_of_job(const std::string &directory, const JobFile &file) {
    ByteWriter writer;
    const auto add = [&writer](const std::string &word) {
        writer.u64(word.size());
        writer.raw(word);
    };
    const auto add_all = [&](const std::vector<std::string> &words) {
        writer.u64(words.size());
        for (const std::string &word : words) add(word);
    };
    add_all({"dcs submit 2", directory});
    for (const JobGrain &grain : file.grains) {
        std::vector<std::string> options, after;
        for (const auto &[name, value] : grain.options.options)
            if (!is_demand(name)) options.insert(options.end(), {name, value});
        for (const std::size_t before : grain.after) after.push_back(std::to_string(before));
        add(grain.name);
        add_all(grain.command);
        add_all(grain.items);
        add_all(options);
        add_all(after);
        add(grain.input);
        for (std::int32_t n = 0; n < (grain.input_path.empty() ? 0 : grain.count()); ++n) {
            const auto text = read_document(for_item(grain, grain.first + n, grain.input_path), most_input);
            add(text ? pki::sha256_text(*text) : text.status().text);
        }
    }
    return "submit-" + hex_of(pki::sha256_text(writer.bytes())).substr(0, 14);
}

std::vector<MapFile> files_of_job(const std::string &directory, const JobFile &file,
                                  const std::vector<JobPart> &parts) {
    const FileWords none;
    std::vector<MapPlan> plans;
    plans.reserve(parts.size());
    std::vector<PlannedFiles> all;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::vector<std::string> &words = file.grains[i].command;
        const bool by_path = words[0].find('/') == words[0].npos;
        if (by_path && words.size() == 1) continue;
        const std::string &named = words[by_path ? 1 : 0];
        plans.push_back({{named}, directory});
        all.push_back({plans.back(), by_path ? named : parts[i].program, none});
    }
    return files_of(all);
}

FileWords files_of_grain(const JobGrain &grain, const JobPart &part, std::int32_t number) {
    const std::int32_t item = number - grain.first;
    if (!grain.many) return part.files;
    return part.files.for_input(grain.items[static_cast<std::size_t>(item)], item + 1);
}

void check_inputs(const JobFile &file, const std::vector<JobPart> &parts, std::vector<std::string> &errors) {
    std::set<std::string> none;
    for (const std::size_t i : JobFlow(file).take_startable()) {
        const FileWords &all = parts[i].files;
        for (std::int32_t n = 0;
             n < (all.files.empty() && all.image.empty() && all.input.empty() ? 0 : file.grains[i].count()); ++n) {
            FileWords words = files_of_grain(file.grains[i], parts[i], file.grains[i].first + n);
            words.outputs.clear();
            const auto failure = check_places(words, none);
            if (!failure) continue;
            errors.push_back(error_of(file.grains[i], *failure));
            break;
        }
    }
}

static bool comes_after(const JobFile &file, std::size_t later, std::size_t earlier) {
    std::set<std::size_t> before;
    for (std::vector<std::size_t> left{later}; !left.empty();) {
        const std::size_t one = left.back();
        left.pop_back();
        for (const std::size_t other : file.grains[one].after)
            if (before.insert(other).second) left.push_back(other);
    }
    return before.contains(earlier);
}

void check_outputs(const JobFile &file, const std::vector<JobPart> &parts, std::vector<std::string> &errors) {
    std::set<std::string> directories;
    std::map<std::string, std::vector<std::size_t>> writers;  // tables
    for (std::size_t i = 0; i < parts.size(); ++i) {
        std::set<std::string> outputs;
        for (std::int32_t n = 0; n < (parts[i].files.outputs.empty() ? 0 : file.grains[i].count()); ++n) {
            FileWords words = files_of_grain(file.grains[i], parts[i], file.grains[i].first + n);
            words.files.clear();  // a grain may make them for another
            words.input.clear();
            auto failure = check_places(words, directories);
            if (const std::string path = written_twice(words, outputs); !path.empty() && !failure)
                failure = usage_failure("two outputs would be written to " + path);
            if (!failure) continue;
            errors.push_back(error_of(file.grains[i], *failure));
            break;
        }
        for (const std::string &path : outputs) {
            for (const std::size_t j : writers[path])  // a grain may replace what one before it made
                if (!comes_after(file, i, j) && !comes_after(file, j, i))
                    errors.push_back(error_of(file.grains[i], usage_failure("two outputs would be written to " + path +
                                                                            ", the other by " + file.grains[j].name)));
            writers[path].push_back(i);
        }
    }
}

std::string for_item(const JobGrain &grain, std::int32_t number, const std::string &text) {
    const std::int32_t item = number - grain.first;
    return words_of({text}, grain.items[static_cast<std::size_t>(item)], item + 1, false)[0];
}

std::vector<std::string> words_of_grain(const JobGrain &grain, const JobPart &part, std::int32_t number) {
    std::vector<std::string> words = grain.command;
    const std::int32_t item = number - grain.first;
    if (grain.many)
        words = words_of(grain.command, grain.items[static_cast<std::size_t>(item)], item + 1,
                         !part.files.by_input(false) && !has_placeholder(grain.input));
    words[0] = part.program;
    return words;
}

}  // namespace dcs::commands
