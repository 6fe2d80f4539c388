#include "daemon/escape.h"

#include <cstddef>

#include "base/hex.h"
#include "base/terminal.h"
#include "base/text.h"

namespace dcs {
namespace {

constexpr std::size_t line_bytes = 8192;

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
        if (length > 0 && value != '\\' && !drives_terminals(value)) {
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
