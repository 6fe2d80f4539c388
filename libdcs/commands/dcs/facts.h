#pragma once
// Rows of d_query and explanations as text for people, one fact a line.
#include <string>
#include <vector>

#include "dcs.h"

namespace dcs::commands {

std::string end_text(const d_grain_row &row);  // "0", "signal 9"; "-" while it has not finished
// `name`: "7:12". The row is one of D_Q_GRAIN.
std::string grain_facts(const std::string &name, const d_grain_row &row);
// "drained" behind the state, where it is.
std::string state_text(const d_host_row &row);
std::string host_facts(const d_host_row &row);
// The summary, then a line for each reason, its hint below.
std::string explanation_text(const std::string &name, const d_explanation &why);
// What each host said of it when its program could not be started there: "NAME: words".
std::vector<std::string> failed_starts(const d_grain_row &row);

}  // namespace dcs::commands
