#pragma once
#include <string>
#include <vector>

namespace dcs::commands {

// `line` without the program's name. What main() returns.
int run_command(const std::vector<std::string> &line);

}  // namespace dcs::commands
