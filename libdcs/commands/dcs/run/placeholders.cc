#include "placeholders.h"

#include <cstdlib>
#include <string_view>

#include "commands/dcs/frame/table.h"

namespace dcs::commands {
namespace {

constexpr std::string_view placeholders[] = {"{}", "{.}", "{/}", "{//}", "{/.}", "{#}"};

// {2}, {-1/.}: how many bytes it is long, or 0.
std::size_t column_at(const std::string &word, std::size_t at) {
    std::size_t end = at + 1;
    if (word[end] == '-') ++end;
    const std::size_t digits = end;
    while (word[end] >= '0' && word[end] <= '9') ++end;
    if (end == digits || end - digits > 6) return 0;
    while (word[end] == '.' || word[end] == '/') ++end;
    return word[end] == '}' ? end + 1 - at : 0;
}

std::string_view placeholder_at(const std::string &word, std::size_t at, bool columns) {
    if (word[at] != '{') return {};
    const bool of_shell = at > 0 && word[at - 1] == '$';  // ${2}, ${#}
    for (const std::string_view mark : placeholders)
        if (word.compare(at, mark.size(), mark) == 0 && !(of_shell && mark == "{#}")) return mark;
    return columns && !of_shell ? std::string_view(word).substr(at, column_at(word, at)) : std::string_view();
}

std::string last_component(const std::string &path) { return path.substr(path.rfind('/') + 1); }

// "a.b/c" has none.
std::string without_extension(const std::string &path) {
    const std::size_t dot = path.rfind('.'), slash = path.rfind('/');
    const bool is_one = dot != std::string::npos && (slash == std::string::npos || slash < dot);
    return is_one ? path.substr(0, dot) : path;
}

std::string directory_of(const std::string &path) {
    const std::size_t end = path.find_last_not_of('/');  // of "a/" it is that of "a"
    if (end == std::string::npos) return path.empty() ? "." : "/";
    const std::size_t slash = path.rfind('/', end);
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

// {2} of one input, {-3} of two.
bool has_column(const std::vector<std::string> &columns, int number) {
    return number != 0 && std::abs(number) <= static_cast<int>(columns.size());
}

std::string column(const std::vector<std::string> &columns, int number) {
    if (!has_column(columns, number)) return "";
    return columns[static_cast<std::size_t>(number < 0 ? static_cast<int>(columns.size()) + number : number - 1)];
}

int column_number(std::string_view placeholder) { return std::atoi(placeholder.data() + 1); }

// Of a word that is a placeholder and no more: whether there is what it names, also among a last grain's fewer inputs.
bool has_input(const std::string &placeholder, const std::vector<std::string> &columns) {
    const int number = column_number(placeholder);
    return number == 0 || has_column(columns, number);
}

std::string meaning_of(std::string_view placeholder, const std::string &input, std::int32_t number) {
    if (is_columns(input)) {
        const std::size_t digits = placeholder.find_first_not_of("-0123456789", 1);
        if (digits == 1) return meaning_of(placeholder, shown_input(input), number);
        const std::string form = "{" + std::string(placeholder.substr(digits));
        return meaning_of(form, column(columns_of(input), column_number(placeholder)), number);
    }
    if (placeholder == "{#}") return std::to_string(number);
    if (placeholder == "{.}") return without_extension(input);
    if (placeholder == "{/}") return last_component(input);
    if (placeholder == "{//}") return directory_of(input);
    if (placeholder == "{/.}") return without_extension(last_component(input));
    return input;
}

}  // namespace

bool is_columns(const std::string &input) { return input.find('\0') != std::string::npos; }

std::vector<std::string> columns_of(const std::string &input) {
    if (!is_columns(input)) return {input};
    std::vector<std::string> columns;
    for (std::size_t at = 0; at < input.size(); at = input.find('\0', at) + 1)
        columns.push_back(input.substr(at, input.find('\0', at) - at));
    return columns;
}

std::string shown_input(const std::string &input) { return joined(columns_of(input), " "); }

std::vector<std::string> words_of(const std::vector<std::string> &command, const std::string &input,
                                  std::int32_t number, bool append, bool spread) {
    std::vector<std::string> words;
    bool replaced = false;
    const bool columns = is_columns(input);
    const std::vector<std::string> all = columns_of(input);
    for (const std::string &word : command) {
        if (spread && word == "{}") {
            words.insert(words.end(), all.begin(), all.end());
            replaced = true;
            continue;
        }
        const bool alone = !word.empty() && placeholder_at(word, 0, columns).size() == word.size();
        if (spread && alone && !has_input(word, all)) {
            replaced = true;
            continue;
        }
        std::string text;
        for (std::size_t at = 0; at < word.size();) {
            const std::string_view mark = placeholder_at(word, at, columns);
            if (mark.empty()) {
                text += word[at++];
                continue;
            }
            text += meaning_of(mark, input, number);
            at += mark.size();
            replaced = true;
        }
        words.push_back(std::move(text));
    }
    if (!replaced && append) words.insert(words.end(), all.begin(), all.end());
    return words;
}

bool has_placeholder(const std::string &word, bool columns) {
    for (std::size_t at = 0; at < word.size(); ++at)
        if (!placeholder_at(word, at, columns).empty()) return true;
    return false;
}

bool is_shell_text(const std::string &word) { return word.find_first_of(" \t\n|&;<>$`\"'*?()") != std::string::npos; }

std::string through_a_shell(const std::string &text) {
    std::string line, marks;
    int count = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view mark = placeholder_at(text, at, false);
        if (!mark.empty()) {  // each becomes a parameter: the shell must not read inputs
            line += ++count < 10 ? "\"$" + std::to_string(count) + "\"" : "\"${" + std::to_string(count) + "}\"";
            marks += " " + std::string(mark);
        } else if (text[at] == '\'') line += "'\\''";
        else line += text[at];
        at += mark.empty() ? 1 : mark.size();
    }
    return "sh -c '" + line + "'" + (count > 0 ? " sh" + marks : "");
}

}  // namespace dcs::commands
