#include "json.h"

#include <cstdio>

#include "locks/record.h"
#include "quantity.h"

namespace dcs::lock_command {
namespace {

// Length of the UTF-8 sequence at the beginning of `text`; 0: there is none.
std::size_t sequence(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
    const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
    if (first >= 0xe0 && first < 0xf0) {
        if (!follows(1) || !follows(2)) return 0;
        return (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) ? 0 : 3;
    }
    if (first >= 0xf0 && first < 0xf5 && follows(1) && follows(2) && follows(3))
        return (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90) ? 0 : 4;
    return 0;
}

}  // namespace

std::string quoted(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        const char c = text[0];
        const std::size_t length = sequence(text);
        if (length == 0) {
            out += "\\ufffd";
        } else if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
            out += escape;
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out + "\"";
}

JsonObject &JsonObject::raw(std::string_view name, std::string_view json) {
    if (!fields_.empty()) fields_ += ",";
    fields_ += quoted(name) + ":";
    fields_ += json;
    return *this;
}

JsonObject &JsonObject::seconds(std::string_view name, std::int64_t nanoseconds) {
    const bool none = nanoseconds == locks::no_limit || nanoseconds == -1;
    return raw(name, none ? "null" : decimal_seconds(nanoseconds));
}

std::string array_of(const std::vector<std::string> &items) {
    std::string out = "[";
    for (const std::string &item : items) out += (out.size() > 1 ? "," : "") + item;
    return out + "]";
}

}  // namespace dcs::lock_command
