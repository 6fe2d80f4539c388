#include "base/hex.h"

namespace dcs {
namespace {
constexpr std::string_view digits = "0123456789abcdef";
}

std::string hex_of(std::string_view bytes) {
    std::string text;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

std::optional<std::string> bytes_of_hex(std::string_view text, std::size_t size) {
    if (text.size() != 2 * size) return std::nullopt;
    std::string bytes;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        const std::size_t high = digits.find(text[i]), low = digits.find(text[i + 1]);
        if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
        bytes += static_cast<char>(high << 4 | low);
    }
    return bytes;
}

}  // namespace dcs
