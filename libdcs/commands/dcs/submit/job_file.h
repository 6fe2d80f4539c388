#pragma once
// A file for `dcs submit`: grains with names, and which of them come after which.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "commands/dcs/frame/arguments.h"

namespace dcs::commands {

struct JobGrain {             // a table [[grain]]: one grain, or one for each item
    std::string name, place;  // place: FILE:LINE:COLUMN
    std::vector<std::string> command;
    Arguments options;       // as of `dcs run`: those of [defaults], then its own
    std::string input;       // its standard input
    std::string input_path;  // instead: of many grains that have different ones
    bool many = false;       // the items take the places of {} in the command
    std::vector<std::string> items;
    std::vector<std::size_t> after;  // places in JobFile::grains
    std::int32_t first = 1;          // number of its first grain

    std::int32_t count() const { return many ? static_cast<std::int32_t>(items.size()) : 1; }
};

struct JobFile {
    Arguments session;  // label, nice
    std::vector<JobGrain> grains;
    std::int32_t count = 0;
};

// The options of `dcs run` that a grain of a file may have.
const OptionTable &grain_options();
inline constexpr std::int32_t most_job_grains = 1'000'000;

// "1-1000", "3", "1-10,20", "0-9:3": each number as an item; at most a million. The error says what is wrong.
Result<std::vector<std::string>> items_of_array(std::string_view text);
// `command_items`: of --array or --each-line, for a file with one table [[grain]] without items. `errors` gets
// NAME:LINE:COLUMN: what. Paths in the file are taken from its reader's directory.
JobFile parse_job_file(std::string_view text, const std::string &name,
                       const std::optional<std::vector<std::string>> &command_items, std::vector<std::string> &errors);
// The lines of a file; "" in `wrong`, or what is wrong.
std::vector<std::string> lines_of_file(const std::string &path, std::string &wrong);

}  // namespace dcs::commands
