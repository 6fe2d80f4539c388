#pragma once
// As much of UTF-8 as tables and JSON need.
#include <cstddef>
#include <string>
#include <string_view>

namespace dcs::commands {

// Bytes of the UTF-8 character that `text` begins with; 0 if it does not begin with a valid one.
std::size_t character_length(std::string_view text);
// Columns on a terminal: one per character (wide ones are not told apart).
std::size_t width_of(std::string_view text);
// Control characters, those that turn the direction of writing, and invalid bytes become '?'. Whatever was written by
// hosts, grains or other users goes through here on its way to people: foreign text must not drive the terminal.
std::string printable(std::string_view text);
// At most `columns` characters; a cut is marked by "..".
std::string shortened(std::string_view text, std::size_t columns);

}  // namespace dcs::commands
