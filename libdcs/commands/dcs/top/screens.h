#pragma once
// The five screens, as lines that may have colours. They are as long as they have rows: the terminal shows a part.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "look.h"

namespace dcs::commands::top {

using Lines = std::vector<std::string>;

inline constexpr std::array<const char *, 5> screen_names = {"Hosts", "Sessions", "Time line", "Events", "Dataflow"};
inline constexpr std::size_t flow_screen = 4;

// Two lines: the pool in figures, and what there is to choose from.
Lines head_lines(const Look &look, std::size_t chosen);
Lines screen_lines(const Look &look, std::size_t chosen, std::size_t columns);

// At most so many, as a table.
std::string running_grains_text(const std::vector<wire::GrainRow> &grains, std::size_t most);

// Those that are drawings: the dataflow of a session, and the time line of the last hour.
Lines flow_lines(const Look &look);
Lines time_lines(const Look &look, std::size_t columns);
// `text` in the colour of a code, such as "1" for bold, if there are colours.
std::string painted(const char *code, const std::string &text);
// The lines of a text, each with its line feed.
void append(Lines &lines, std::string_view text);

}  // namespace dcs::commands::top
