#include "unicode.h"

namespace dcs::commands {

std::size_t character_length(std::string_view text) {
    if (text.empty()) return 0;
    const unsigned char first = static_cast<unsigned char>(text[0]);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xf0 && first <= 0xf4  ? 4
                               : first >= 0xe0 && first < 0xf0 ? 3
                               : first >= 0xc2 && first < 0xe0 ? 2
                                                               : 0;
    if (length == 0 || text.size() < length) return 0;
    unsigned long point = first & (0xffu >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        const unsigned char next = static_cast<unsigned char>(text[i]);
        if ((next & 0xc0) != 0x80) return 0;
        point = point << 6 | (next & 0x3f);
    }
    const bool too_long = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    const bool surrogate = point >= 0xd800 && point <= 0xdfff;
    return too_long || surrogate || point > 0x10ffff ? 0 : length;
}

std::size_t width_of(std::string_view text) {
    std::size_t columns = 0;
    while (!text.empty()) {
        const std::size_t length = character_length(text);
        text.remove_prefix(length == 0 ? 1 : length);
        ++columns;
    }
    return columns;
}

std::string printable(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t length = character_length(text);
        const unsigned char c = static_cast<unsigned char>(text[0]);
        // U+0080..U+009F are control characters too
        const bool control =
            length == 0 || c < 0x20 || c == 0x7f ||
            (length == 2 && c == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0);
        if (control) out += '?';
        else out += text.substr(0, length);
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

std::string shortened(std::string_view text, std::size_t columns) {
    if (width_of(text) <= columns) return std::string(text);
    std::string out;
    for (std::size_t taken = 0; taken + 2 < columns; ++taken) {
        const std::size_t length = character_length(text);
        out += text.substr(0, length == 0 ? 1 : length);
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out + "..";
}

}  // namespace dcs::commands
