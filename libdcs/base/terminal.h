#pragma once

namespace dcs {

// Control characters, U+0080..U+009F among them, and those that change the direction of writing or end a line: a
// terminal that shows one obeys it.
constexpr bool drives_terminals(char32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

}  // namespace dcs
