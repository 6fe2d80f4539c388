#pragma once
// Words of other tools, and what is typed here instead.
#include <string>

#include "commands/dcs/frame/failure.h"

namespace dcs::commands {

// A hint for a command that does not exist; null: nothing is known of the word.
const char *habit_of_command(const std::string &noun, const std::string &word);

// Why a line for `dcs map` or `dcs run` was not understood, with a hint if its option is one of another tool.
Failure with_habit(const std::string &name, const std::string &text, const std::string &otherwise);

}  // namespace dcs::commands
