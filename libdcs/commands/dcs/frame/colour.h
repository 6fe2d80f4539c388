#pragma once
// Words of states in colour, for people at a terminal.
#include <string>
#include <string_view>

namespace dcs::commands {

// --color; `automatic`: on a terminal that is not dumb, unless NO_COLOR is set and not empty.
void set_colour(std::string_view when);
// Whether standard output gets colour.
bool has_colour();
// `text` in the colour of the state that `word` begins with; as it is where the state has none.
std::string coloured(std::string_view word, const std::string &text);

}  // namespace dcs::commands
