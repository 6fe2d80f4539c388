#pragma once
#include <string>
#include <vector>

namespace dcs::commands {

// What can be in the place of the last word, one on each line; what main() returns.
int print_completions(const std::vector<std::string> &words);

}  // namespace dcs::commands
