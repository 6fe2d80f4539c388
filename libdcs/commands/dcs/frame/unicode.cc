#include "unicode.h"

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

namespace {

// Control characters, U+0080..U+009F among them, and those that turn the direction of writing or end a line.
bool drives_terminals(std::string_view character) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
    if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
    if (character.size() == 2) return (byte(0) == 0xc2 && byte(1) < 0xa0) || character == "\xd8\x9c";
    if (character.size() != 3 || byte(0) != 0xe2) return false;
    if (byte(1) == 0x80) return byte(2) == 0x8e || byte(2) == 0x8f || (byte(2) >= 0xa8 && byte(2) <= 0xae);
    return byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
}

}  // namespace

std::string printable(std::string_view text, bool lines) {
    std::string out;
    while (!text.empty()) {
        const std::size_t length = utf8_character(text);
        const bool ends_line = lines && text.front() == '\n';
        if (length == 0 || (drives_terminals(text.substr(0, length)) && !ends_line)) out += '?';
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
