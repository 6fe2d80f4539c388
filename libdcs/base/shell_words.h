#pragma once
// Words as a shell takes them, quoted if need be, on one line.
#include <string>
#include <vector>

namespace dcs {

std::string shell_word(const std::string &word);
std::string shell_line(const std::vector<std::string> &words);

}  // namespace dcs
