#include "base/json.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace dcs {

std::string json_string(std::string_view text) {
    static constexpr std::string_view escaped = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
    std::string out = "\"";
    while (!text.empty()) {
        char32_t value = 0;
        const std::size_t length = utf8_character(text, &value), at = escaped.find(text[0]);
        if (length == 0) {
            out += "\xef\xbf\xbd";
        } else if (at != escaped.npos) {
            out += {'\\', letters[at]};
        } else if (drives_terminals(value)) {  // most are valid in JSON, but people look at it
            char code[8];
            std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(value));
            out += code;
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out + "\"";
}

std::string json_number(double value) {
    if (!std::isfinite(value)) return "null";
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
    return std::string(buffer, end.ptr);
}

std::string json_array(const std::vector<std::string> &documents) {
    std::string out = "[";
    for (const std::string &document : documents) {
        if (out.size() > 1) out += ",";
        out += document;
    }
    return out + "]";
}

JsonObject &JsonObject::add_raw(std::string_view name, std::string_view document) {
    if (!members_.empty()) members_ += ",";
    members_ += json_string(name);
    members_ += ":";
    members_ += document;
    return *this;
}

JsonObject &JsonObject::add_members(std::string_view object) {
    if (object.size() <= 2) return *this;
    if (!members_.empty()) members_ += ",";
    members_ += object.substr(1, object.size() - 2);
    return *this;
}

}  // namespace dcs
