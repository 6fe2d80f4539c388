#pragma once
// Foreign bytes as text: lines, words and numbers, names, UTF-8 (RFC 3629), and names in which only harmless characters
// stand for themselves.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/limits.h"

namespace dcs {

// The first line of `text`, without its end; `text` goes on behind it.
std::string_view take_line(std::string_view &text);
// What stands between `separators`; nothing is no word.
std::vector<std::string_view> words_of(std::string_view text, std::string_view separators = " \t\r");
// As execve(2) takes them, with a null pointer at the end. They point into `words`.
std::vector<char *> pointers_to(const std::vector<std::string> &words);
std::string joined(const std::vector<std::string> &parts, const std::string &between = ", ");
// Whether the whole text is a number that `value` can hold; otherwise `value` stays as it is.
template <class Number> bool read_number(std::string_view text, Number &value, int base = 10) {
    Number read{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read, base);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (whole) value = read;
    return whole;
}

// By one conversion of printf(3), such as "%.1f".
std::string formatted(const char *conversion, double value);

// ASCII letters and digits, '.', '_' and '-'.
constexpr bool is_name_character(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}
// Names of hosts, logins and control programs: of such characters, without a '.' or '-' at the front.
bool is_name(std::string_view text, std::size_t most = limits::name_bytes);

// Bytes of the well-formed character at the front of `text`, which is put into `value`; 0: there is none.
std::size_t utf8_character(std::string_view text, char32_t *value = nullptr) noexcept;
bool valid_utf8(std::string_view text) noexcept;

// ASCII letters and digits, and the characters of `plain`, stand for themselves; any other byte is %XX, in capitals.
std::string percent_encoded(std::string_view text, std::string_view plain);
// Only what percent_encoded() writes: different texts never decode to the same one.
std::optional<std::string> percent_decoded(std::string_view text, std::string_view plain);

// Words as a shell takes them, quoted if need be, on one line.
std::string shell_word(const std::string &word);
std::string shell_line(const std::vector<std::string> &words);

// Control characters, U+0080..U+009F among them, and those that change the direction of writing or end a line: a
// terminal that shows one obeys it.
constexpr bool drives_terminals(char32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

// These and invalid bytes become '?'. What hosts, grains or other users wrote goes through here before people see it:
// foreign text must not drive the terminal. `lines`: line feeds stay.
std::string printable(std::string_view text, bool lines = false);

// Codes and hashes as people copy them: hexadecimal, in lower case.
std::string hex_of(std::string_view bytes);
// Sixteen digits.
std::string hex_of_number(std::uint64_t number);
// Only what hex_of() writes of one byte or more; of exactly `size` bytes, if it is given.
std::optional<std::string> bytes_of_hex(std::string_view text);
std::optional<std::string> bytes_of_hex(std::string_view text, std::size_t size);

// The first twelve bytes as six words that can be read out over the telephone, "lusab-babad-...": sixteen
// bits each, consonants and vowels by turns. Both sides of a join show them.
std::string in_words(const TokenHash &hash);

}  // namespace dcs
