#include "scheduler/record/paths.h"

#include <charconv>

namespace dcs::record {
namespace {

bool plain(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

std::string encode_login(std::string_view login) {
    static const char digits[] = "0123456789ABCDEF";
    if (login.empty()) return "%";  // no other name ends in a bare percent sign
    std::string name;
    for (std::size_t i = 0; i < login.size(); ++i) {
        const char c = login[i];
        if (plain(c) && !(i == 0 && c == '.')) {
            name += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        name += '%';
        name += digits[byte >> 4];
        name += digits[byte & 15];
    }
    return name;
}

std::optional<std::string> decode_login(std::string_view name) {
    if (name == "%") return std::string();
    std::string login;
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (name[i] != '%') {
            login += name[i];
            continue;
        }
        if (i + 2 >= name.size()) return std::nullopt;
        const int high = hex_value(name[i + 1]), low = hex_value(name[i + 2]);
        if (high < 0 || low < 0) return std::nullopt;
        login += static_cast<char>(high * 16 + low);
        i += 2;
    }
    if (login.empty() || encode_login(login) != name) return std::nullopt;
    return login;
}

std::string session_directory(const SessionKey &key) {
    return std::string(sessions_directory) + "/" + encode_login(key.user) + "/" + std::to_string(key.number);
}

std::string grains_directory(const SessionKey &key) { return session_directory(key) + "/g"; }

std::string grain_directory(const GrainKey &key) {
    return grains_directory(key.session) + "/" + std::to_string(key.grain);
}

std::optional<std::int32_t> number_of(std::string_view name) {
    std::int32_t value = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
    if (std::to_string(value) != name) return std::nullopt;
    return value;
}

}  // namespace dcs::record
