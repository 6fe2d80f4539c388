#pragma once
// As much of UTF-8 as tables and JSON need.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dcs::commands {

// Columns on a terminal: one per character (wide ones count as one).
std::size_t width_of(std::string_view text);
// Control characters, those that turn the direction of writing, and invalid bytes become '?'. Whatever was written by
// hosts, grains or other users goes through here on its way to people: foreign text must not drive the terminal.
// `lines`: line feeds stay.
std::string printable(std::string_view text, bool lines = false);
// At most `columns` characters; a cut is marked by "..".
std::string shortened(std::string_view text, std::size_t columns);

// A command line for people, at most `columns` characters.
std::string label_of(const std::vector<std::string> &words, std::size_t columns);

}  // namespace dcs::commands
