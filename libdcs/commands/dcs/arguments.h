#pragma once
// Command lines: which options a verb knows, and what a command line says.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace dcs::commands {

struct Option {
    const char *name;  // "--class"
    char letter;       // 'o' for -o; 0: none
    bool takes_value;
};

struct Arguments {
    std::vector<std::pair<std::string, std::string>> options;  // name, value; in order
    std::vector<std::string> words;

    bool has(std::string_view name) const;
    std::optional<std::string> value(std::string_view name) const;  // the last one counts
};

// Accepts --name value, --name=value, -n value, -nvalue and `--` before the words.
// `command_follows`: the first word ends the options (what follows belongs to another program's
// command line). On an error `found` holds what was understood before it.
Status parse_arguments(const std::vector<std::string> &line, const std::vector<Option> &known,
                       bool command_follows, Arguments &found);

// Whole text, decimal, or hexadecimal after 0x; within the bounds, else nothing.
std::optional<std::int64_t> number_of(std::string_view text, std::int64_t least, std::int64_t most);
// "10", "1.5", "90s", "5m", "2h"; not negative.
std::optional<double> seconds_of_text(std::string_view text);
// Mask of host classes: 32 bits.
std::optional<std::uint32_t> class_of(std::string_view text);

// The candidate that somebody who typed `word` most likely meant; empty if none is near.
std::string nearest(std::string_view word, const std::vector<std::string> &candidates);

}  // namespace dcs::commands
