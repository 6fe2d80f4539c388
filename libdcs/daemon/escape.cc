#include "daemon/escape.h"

#include <cstddef>
#include <cstdint>

namespace dcs {
namespace {

constexpr std::size_t line_bytes = 8192;

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Length of the well-formed UTF-8 character at the start of `text`, and the character; 0: there is none.
std::size_t character(std::string_view text, std::uint32_t *value) {
    const auto lead = static_cast<unsigned char>(text[0]);
    std::size_t length = lead < 0x80 ? 1 : lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3
                         : lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
    if (length == 0 || text.size() < length) return 0;
    std::uint32_t v = length == 1 ? lead : lead & (0x7fu >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if (!continues(text[i])) return 0;
        v = v << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu);
    }
    const std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (v < least[length] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000)) return 0;
    *value = v;
    return length;
}

bool harmless(std::uint32_t v) {
    if (v < 0x20 || v == '\\' || (v >= 0x7f && v < 0xa0)) return false;
    if (v == 0x2028 || v == 0x2029 || v == 0x200e || v == 0x200f || v == 0x61c) return false;
    return !(v >= 0x202a && v <= 0x202e) && !(v >= 0x2066 && v <= 0x2069);
}

void append_escaped(std::string *out, char c) {
    constexpr char hex[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
    case '\\': *out += "\\\\"; return;
    case '\n': *out += "\\n"; return;
    case '\t': *out += "\\t"; return;
    case '\r': *out += "\\r"; return;
    default: break;
    }
    *out += "\\x";
    *out += hex[byte >> 4];
    *out += hex[byte & 15];
}

}  // namespace

std::string escape_text(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        if (out.size() >= line_bytes) return out + "...";
        std::uint32_t value = 0;
        std::size_t length = character(text, &value);
        if (length > 0 && harmless(value)) {
            out.append(text.substr(0, length));
        } else {
            if (length == 0) length = 1;
            for (char c : text.substr(0, length)) append_escaped(&out, c);
        }
        text.remove_prefix(length);
    }
    return out;
}

}  // namespace dcs
