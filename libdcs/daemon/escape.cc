#include "daemon/escape.h"

#include <cstddef>

#include "base/hex.h"
#include "base/text.h"

namespace dcs {
namespace {

constexpr std::size_t line_bytes = 8192;

bool harmless(char32_t v) {
    if (v < 0x20 || v == '\\' || (v >= 0x7f && v < 0xa0)) return false;
    if (v == 0x2028 || v == 0x2029 || v == 0x200e || v == 0x200f || v == 0x61c) return false;
    return !(v >= 0x202a && v <= 0x202e) && !(v >= 0x2066 && v <= 0x2069);
}

void append_escaped(std::string *out, char c) {
    switch (c) {
    case '\\': *out += "\\\\"; return;
    case '\n': *out += "\\n"; return;
    case '\t': *out += "\\t"; return;
    case '\r': *out += "\\r"; return;
    default: break;
    }
    *out += "\\x" + hex_of({&c, 1});
}

}  // namespace

std::string escape_text(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        if (out.size() >= line_bytes) return out + "...";
        char32_t value = 0;
        std::size_t length = utf8_character(text, &value);
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
