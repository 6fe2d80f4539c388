#pragma once
// What a command line says, read by the table of its verb's options.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/option_table.h"

namespace dcs::commands {

// Options are named as in the table, without dashes; a value that is here has been found to be what its row takes.
struct Arguments {
    std::vector<std::pair<std::string, std::string>> options;  // name, value; in order
    std::vector<std::string> words;

    bool has(std::string_view name) const;
    std::optional<std::string> value(std::string_view name) const;  // the last one counts
    std::optional<std::int64_t> number(std::string_view name) const;
    std::optional<std::int64_t> megabytes(std::string_view name) const;
    std::optional<double> seconds(std::string_view name) const;
};

// `command_follows`: the first word ends the options (what follows belongs to another program's command line). On an
// error `found` holds what was understood before it.
Status parse_arguments(const std::vector<std::string> &line, const OptionTable &known, bool command_follows,
                       Arguments &found);
// `usage`: as in Verb::words. "SEL..." is at least one, "[DIR]" at most one.
Status check_word_count(const std::string &usage, const std::vector<std::string> &words);

}  // namespace dcs::commands
