#pragma once
// What the files that people write for the scheduler have in common: lines of words, `#` begins a comment.
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/status.h"

namespace dcs::shell {

using Words = std::vector<std::string_view>;
struct NumberedLine {
    std::size_t number;
    Words words;
};
// The lines that have words; these point into `text`.
std::vector<NumberedLine> lines_with_words(std::string_view text);
// Calls `take` with the words of each line that has any; it says what is wrong, or "". All lines are read, and each
// wrong one is a line "file:line: what" of the failure (invalid).
Status each_line(std::string_view text, const std::string &file, const std::function<std::string(const Words &)> &take);
// The lines that have words, without comments, a space between two words.
std::set<std::string> rules_of(std::string_view text);
// "added `deny bob`; removed `session_age 30d`", or "".
std::string changes_of_rules(const std::set<std::string> &before, const std::set<std::string> &now);
// Its first line, and how many there are more: for logs and answers.
Status in_short(const Status &why);
}  // namespace dcs::shell
