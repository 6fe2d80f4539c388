#pragma once
// Codes and hashes as people copy them: hexadecimal, in lower case.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace dcs {

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
