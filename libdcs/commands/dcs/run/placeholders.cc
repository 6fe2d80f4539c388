#include "placeholders.h"

#include <string_view>

namespace dcs::commands {
namespace {

constexpr std::string_view placeholders[] = {"{}", "{.}", "{/}", "{//}", "{/.}", "{#}"};

std::string_view placeholder_at(const std::string &word, std::size_t at) {
    if (word[at] == '{')
        for (const std::string_view mark : placeholders)
            if (word.compare(at, mark.size(), mark) == 0) return mark;
    return {};
}

std::string last_component(const std::string &path) { return path.substr(path.rfind('/') + 1); }

// "a.b/c" has none.
std::string without_extension(const std::string &path) {
    const std::size_t dot = path.rfind('.'), slash = path.rfind('/');
    const bool is_one = dot != std::string::npos && (slash == std::string::npos || slash < dot);
    return is_one ? path.substr(0, dot) : path;
}

std::string directory_of(const std::string &path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::string meaning_of(std::string_view placeholder, const std::string &input, std::int32_t number) {
    if (placeholder == "{#}") return std::to_string(number);
    if (placeholder == "{.}") return without_extension(input);
    if (placeholder == "{/}") return last_component(input);
    if (placeholder == "{//}") return directory_of(input);
    if (placeholder == "{/.}") return without_extension(last_component(input));
    return input;
}

}  // namespace

std::vector<std::string> words_of(const std::vector<std::string> &command, const std::string &input,
                                  std::int32_t number) {
    std::vector<std::string> words;
    bool replaced = false;
    for (const std::string &word : command) {
        std::string text;
        for (std::size_t at = 0; at < word.size();) {
            const std::string_view mark = placeholder_at(word, at);
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
    if (!replaced) words.push_back(input);
    return words;
}

bool has_placeholder(const std::string &word) {
    for (std::size_t at = 0; at < word.size(); ++at)
        if (!placeholder_at(word, at).empty()) return true;
    return false;
}

bool is_shell_text(const std::string &word) { return word.find_first_of(" \t\n|&;<>$`\"'*?()") != std::string::npos; }

std::string through_a_shell(const std::string &text) {
    std::string line;
    bool replaced = false;
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view mark = placeholder_at(text, at);
        if (mark == "{}") line += "\"$1\"", replaced = true;
        else if (text[at] == '\'') line += "'\\''";
        else line += mark.empty() ? std::string(1, text[at]) : std::string(mark);
        at += mark.empty() ? 1 : mark.size();
    }
    return "sh -c '" + line + "'" + (replaced ? " sh {}" : "");
}

}  // namespace dcs::commands
