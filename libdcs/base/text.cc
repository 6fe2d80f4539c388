#include "base/text.h"

#include <algorithm>
#include <cstdio>

#include "base/require.h"

namespace dcs {
namespace {

constexpr std::string_view capital_digits = "0123456789ABCDEF";

bool is_plain(char c, std::string_view plain) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           plain.find(c) != std::string_view::npos;
}

}  // namespace

std::string_view take_line(std::string_view &text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    return line;
}

std::string formatted(const char *conversion, double value) {
    char text[64];
    std::snprintf(text, sizeof text, conversion, value);
    return text;
}

std::vector<std::string_view> words_of(std::string_view text, std::string_view separators) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; (at = text.find_first_not_of(separators, at)) != text.npos;) {
        words.push_back(text.substr(at, text.find_first_of(separators, at) - at));
        at += words.back().size();
    }
    return words;
}

std::vector<char *> pointers_to(const std::vector<std::string> &words) {
    std::vector<char *> pointers;
    for (const std::string &word : words) pointers.push_back(const_cast<char *>(word.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

bool is_name(std::string_view text, std::size_t most) {
    return !text.empty() && text.size() <= most && text[0] != '.' && text[0] != '-' &&
           std::all_of(text.begin(), text.end(), is_name_character);
}

std::size_t utf8_character(std::string_view text, char32_t *value) noexcept {
    if (text.empty()) return 0;
    const auto lead = static_cast<unsigned char>(text[0]);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xc2 ? 0
                               : lead < 0xe0 ? 2
                               : lead < 0xf0 ? 3
                               : lead < 0xf5 ? 4
                                             : 0;
    if (length == 0 || text.size() < length) return 0;
    char32_t v = length == 1 ? lead : lead & (0x7fu >> length);
    for (std::size_t i = 1; i < length; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if ((byte & 0xc0) != 0x80) return 0;
        v = v << 6 | (byte & 0x3fu);
    }
    constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool half_of_a_pair = v >= 0xd800 && v < 0xe000;
    if (v < least[length] || v > 0x10ffff || half_of_a_pair) return 0;
    if (value != nullptr) *value = v;
    return length;
}

bool valid_utf8(std::string_view text) noexcept {
    while (!text.empty()) {
        const std::size_t length = utf8_character(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

std::string printable(std::string_view text, bool lines) {
    std::string out;
    while (!text.empty()) {
        char32_t value = 0;
        const std::size_t length = utf8_character(text, &value);
        const bool ends_line = lines && text.front() == '\n';
        if (length == 0 || (drives_terminals(value) && !ends_line)) out += '?';
        else out += text.substr(0, length);
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

std::string percent_encoded(std::string_view text, std::string_view plain) {
    DCS_REQUIRE(plain.find('%') == std::string_view::npos, "the sign of an encoded byte is never plain");
    std::string encoded;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (is_plain(c, plain)) encoded += c;
        else encoded.append({'%', capital_digits[byte >> 4], capital_digits[byte & 15]});
    }
    return encoded;
}

std::optional<std::string> percent_decoded(std::string_view text, std::string_view plain) {
    std::string decoded;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (is_plain(text[i], plain)) {
            decoded += text[i];
            continue;
        }
        if (text[i] != '%' || i + 2 >= text.size()) return std::nullopt;
        const std::size_t high = capital_digits.find(text[i + 1]), low = capital_digits.find(text[i + 2]);
        if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
        decoded += static_cast<char>(high << 4 | low);
        if (is_plain(decoded.back(), plain)) return std::nullopt;  // "%41" is no way to write "A"
        i += 2;
    }
    return decoded;
}

std::string shell_word(const std::string &word) {
    if (word == "{}") return word;
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
    if (word.find_first_of("\n\t\r") != std::string::npos) {  // a line of the log stays a line, and has its columns
        std::string r = "$'";
        for (const char c : word) {
            if (c == '\'' || c == '\\') r += '\\';
            r += c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : std::string(1, c);
        }
        return r + "'";
    }
    std::string r = "'";
    for (const char c : word) r += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return r + "'";
}

std::string joined(const std::vector<std::string> &parts, const std::string &between) {
    std::string text;
    for (const std::string &part : parts) text += (text.empty() ? "" : between) + part;
    return text;
}

std::string shell_line(const std::vector<std::string> &words) {
    std::string line;
    for (const std::string &word : words) line += (line.empty() ? "" : " ") + shell_word(word);
    return line;
}

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
