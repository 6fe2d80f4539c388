#pragma once
// Placeholders for an input in a command, such as {}; and a command that is meant for a shell.
#include <cstdint>
#include <string>
#include <vector>

namespace dcs::commands {

// Replaced in each word: {} by the input, {.} by it without its extension, {/} by its last path component, {//} by
// what precedes that ("." if nothing does), {/.} by the last component without extension, {#} by the number.
// Without any of them the input is appended as a word of its own, unless `append` is false. With `spread` a word {} is
// replaced by a word for each column.
std::vector<std::string> words_of(const std::vector<std::string> &command, const std::string &input,
                                  std::int32_t number, bool append = true, bool spread = false);
// Has a word something to replace?
bool has_placeholder(const std::string &word, bool columns = false);

// An input of several columns, each with a NUL byte behind it. {2} is the second of them, {-1} the last, {2/} its last
// path component and so on, {} all with spaces between; appended each is a word. In other inputs {2} is no placeholder.
bool is_columns(const std::string &input);
std::vector<std::string> columns_of(const std::string &input);
std::string shown_input(const std::string &input);  // with spaces between

// Is this word no program's name but a line for a shell? "echo a | wc -c"
bool is_shell_text(const std::string &word);
// How to hand `text` to a shell: `sh -c 'echo "$1" | wc -c' sh {}`; without a placeholder no words follow the text.
std::string through_a_shell(const std::string &text);

}  // namespace dcs::commands
