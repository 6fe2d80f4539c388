#pragma once
// Foreign bytes as text: UTF-8 (RFC 3629), and names in which only harmless characters stand for themselves.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dcs {

// Bytes of the well-formed character at the front of `text`, which is put into `value`; 0: there is none.
std::size_t utf8_character(std::string_view text, char32_t *value = nullptr) noexcept;
bool valid_utf8(std::string_view text) noexcept;

// ASCII letters and digits, and the characters of `plain`, stand for themselves; any other byte is %XX, in capitals.
std::string percent_encoded(std::string_view text, std::string_view plain);
// Only what percent_encoded() writes: different texts never decode to the same one.
std::optional<std::string> percent_decoded(std::string_view text, std::string_view plain);

}  // namespace dcs
