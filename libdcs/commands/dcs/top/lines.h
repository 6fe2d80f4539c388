#pragma once
// Lines that may have colours, and those of the screens that are drawings.
#include <string>
#include <string_view>
#include <vector>

#include "look.h"

namespace dcs::commands::top {

using Lines = std::vector<std::string>;

// The dataflow of a session, and the time line of the last hour.
Lines flow_lines(const Look &look);
Lines time_lines(const Look &look, std::size_t columns);
// `text` in the colour of a code, such as "1" for bold, if there are colours.
std::string painted(const char *code, const std::string &text);
// The lines of a text, each with its line feed.
void append(Lines &lines, std::string_view text);

}  // namespace dcs::commands::top
