#include "base/hex.h"

namespace dcs {
namespace {
constexpr std::string_view digits = "0123456789abcdef";
}

std::string hex_of(std::string_view bytes) {
    std::string text;
    text.reserve(2 * bytes.size());
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

std::string hex_of_number(std::uint64_t number) {
    std::string text(16, '0');
    for (auto digit = text.rbegin(); digit != text.rend(); ++digit, number >>= 4) *digit = digits[number & 15];
    return text;
}

std::optional<std::string> bytes_of_hex(std::string_view text) {
    if (text.empty() || text.size() % 2 != 0) return std::nullopt;
    std::string bytes;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        const std::size_t high = digits.find(text[i]), low = digits.find(text[i + 1]);
        if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
        bytes += static_cast<char>(high << 4 | low);
    }
    return bytes;
}

std::optional<std::string> bytes_of_hex(std::string_view text, std::size_t size) {
    return text.size() == 2 * size ? bytes_of_hex(text) : std::nullopt;
}

std::string in_words(const TokenHash &hash) {
    // Sixteen bits a word: consonant, vowel, consonant, vowel, consonant.
    constexpr char consonants[] = "bdfghjklmnprstvz", vowels[] = "aiou";
    std::string words;
    for (std::size_t at = 0; at < 12; at += 2) {
        const unsigned bits = static_cast<unsigned>(hash[at]) << 8 | hash[at + 1];
        if (at > 0) words += '-';
        words += consonants[bits >> 12];
        words += vowels[bits >> 10 & 3];
        words += consonants[bits >> 6 & 15];
        words += vowels[bits >> 4 & 3];
        words += consonants[bits & 15];
    }
    return words;
}

}  // namespace dcs
