#include "grainserver/files/grain_name.h"

#include <charconv>

namespace dcs::files {
namespace {
bool plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '+' || c == '-';
}
int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}
bool decode_name(std::string_view text, std::string &name) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (plain(text[i])) { name += text[i]; continue; }
        if (text[i] != '%' || i + 2 >= text.size()) return false;
        const int high = hex_value(text[i + 1]), low = hex_value(text[i + 2]);
        if (high < 0 || low < 0) return false;
        name += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return true;
}
template <class T> bool number(std::string_view text, T &value) {
    const char *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stop == end;
}
}  // namespace

std::string encoded_name(std::string_view name) {
    static const char digits[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : name) {
        if (plain(c)) { out += c; continue; }
        const auto byte = static_cast<unsigned char>(c);
        out += '%';
        out += digits[byte >> 4];
        out += digits[byte & 15];
    }
    return out;
}

std::string directory_name(const std::string &host, const GrainKey &key, Incarnation incarnation) {
    return encoded_name(host) + "," + encoded_name(key.session.user) + "," + std::to_string(key.session.number) +
           "," + std::to_string(key.grain) + "," + std::to_string(incarnation);
}

Result<LeaseName> parse_directory_name(std::string_view name) {
    LeaseName lease;
    std::string_view parts[5];
    std::string_view rest = name;
    for (int i = 0; i < 5; ++i) {
        const std::size_t comma = i < 4 ? rest.find(',') : rest.size();
        if (comma == std::string_view::npos) return fail(Code::invalid, "no directory of a grain");
        parts[i] = rest.substr(0, comma);
        if (i < 4) rest.remove_prefix(comma + 1);
    }
    if (!decode_name(parts[0], lease.host) || !decode_name(parts[1], lease.key.session.user) ||
        !number(parts[2], lease.key.session.number) || !number(parts[3], lease.key.grain) ||
        !number(parts[4], lease.incarnation) || directory_name(lease.host, lease.key, lease.incarnation) != name)
        return fail(Code::invalid, "no directory of a grain");
    return lease;
}

}  // namespace dcs::files
