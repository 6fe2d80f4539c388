#include "wire/json.h"

#include <charconv>
#include <cmath>

#include <boost/json/serialize.hpp>
#include <boost/json/string_view.hpp>
#include <boost/json/value.hpp>

#include "wire/message.h"

namespace dcs::wire {
namespace {

// Length of the well-formed UTF-8 sequence at the front of `s` (RFC 3629), 0 if there is none.
std::size_t sequence_length(std::string_view s) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t n = first >= 0xc2 && first <= 0xdf ? 2
                          : (first & 0xf0) == 0xe0       ? 3
                          : first >= 0xf0 && first <= 0xf4 ? 4
                                                           : 0;
    if (n == 0 || s.size() < n) return 0;
    for (std::size_t i = 1; i < n; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0;  // longer than needed
    if (first == 0xed && byte(1) > 0x9f) return 0;  // half of a surrogate pair
    if (first == 0xf0 && byte(1) < 0x90) return 0;
    if (first == 0xf4 && byte(1) > 0x8f) return 0;  // above U+10FFFF
    return n;
}

std::string made_valid(std::string_view s) {
    std::string r;
    r.reserve(s.size());
    while (!s.empty()) {
        const std::size_t n = sequence_length(s);
        if (n == 0) r += "\xef\xbf\xbd";
        else r += s.substr(0, n);
        s.remove_prefix(n == 0 ? 1 : n);
    }
    return r;
}

}  // namespace

bool valid_utf8(std::string_view bytes) {
    while (!bytes.empty()) {
        const std::size_t n = sequence_length(bytes);
        if (n == 0) return false;
        bytes.remove_prefix(n);
    }
    return true;
}

std::string in_hex(std::string_view bytes) {
    static const char digits[] = "0123456789abcdef";
    std::string text;
    for (const char c : bytes) {
        text += digits[(static_cast<unsigned char>(c) >> 4) & 15];
        text += digits[static_cast<unsigned char>(c) & 15];
    }
    return text;
}

std::string json_string(std::string_view bytes) {
    if (!valid_utf8(bytes)) return json_string(made_valid(bytes));
    return boost::json::serialize(boost::json::string_view(bytes.data(), bytes.size()));
}

std::string json_number(double value) {
    if (!std::isfinite(value)) return "null";
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
    return std::string(buffer, end.ptr);
}

std::string to_json(const SystemRow &row) { return JsonText::of(row); }
std::string to_json(const HostRow &row) { return JsonText::of(row); }
std::string to_json(const SessionRow &row) { return JsonText::of(row); }
std::string to_json(const GrainRow &row) { return JsonText::of(row); }
std::string to_json(const ProblemRow &row) { return JsonText::of(row); }
std::string to_json(const Explanation &row) { return JsonText::of(row); }

}  // namespace dcs::wire
