#pragma once
// The five screens, as lines that may have colours. They are as long as they have rows: the terminal shows a part.
#include <array>

#include "lines.h"

namespace dcs::commands::top {

inline constexpr std::array<const char *, 5> screen_names = {"Hosts", "Sessions", "Time line", "Events", "Dataflow"};
inline constexpr std::size_t flow_screen = 4;

// Two lines: the pool in figures, and what there is to choose from.
Lines head_lines(const Look &look, std::size_t chosen);
Lines screen_lines(const Look &look, std::size_t chosen, std::size_t columns);

// At most so many, as a table.
std::string running_grains_text(const std::vector<wire::GrainRow> &grains, std::size_t most);

}  // namespace dcs::commands::top
