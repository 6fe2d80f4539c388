#include "unicode.h"

#include "base/terminal.h"
#include "base/text.h"

namespace dcs::commands {

std::size_t width_of(std::string_view text) {
    std::size_t columns = 0;
    while (!text.empty()) {
        const std::size_t length = utf8_character(text);
        text.remove_prefix(length == 0 ? 1 : length);
        ++columns;
    }
    return columns;
}

std::string printable(std::string_view text, bool lines) {
    std::string out;
    while (!text.empty()) {
        char32_t value = 0;
        const std::size_t length = utf8_character(text, &value);
        const bool ends_line = lines && text.front() == '\n';
        if (length == 0 || (drives_terminals(value) && !ends_line)) out += '?';
        else out += text.substr(0, length);
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

std::string shortened(std::string_view text, std::size_t columns) {
    if (width_of(text) <= columns) return std::string(text);
    std::string out;
    for (std::size_t taken = 0; taken + 2 < columns; ++taken) {
        const std::size_t length = utf8_character(text);
        out += text.substr(0, length == 0 ? 1 : length);
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out + "..";
}

std::string label_of(const std::vector<std::string> &words, std::size_t columns) {
    std::string text;
    for (std::size_t i = 0; i < words.size() && text.size() < 4 * columns; ++i) text += (i > 0 ? " " : "") + words[i];
    return shortened(printable(text), columns);
}

}  // namespace dcs::commands
