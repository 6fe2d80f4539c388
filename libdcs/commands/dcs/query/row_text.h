#pragma once
// Rows of the scheduler and explanations as text for people, one fact a line.
#include <string>
#include <vector>

#include "wire/message.h"

namespace dcs::commands {

std::string end_text(const wire::GrainRow &row);  // "0", "signal 9"; "-" while it has not finished
// `name`: "7:12". The row is one with all that is known of the grain.
// times: as of times_text.
std::string grain_facts(const std::string &name, const wire::GrainRow &row, const std::string &times = "");
std::string checkpoint_age_text(const wire::GrainRow &row);  // "12 s ago", "none"
// "drained" behind the state, where it is.
std::string state_text(const wire::HostRow &row);
std::string or_dash(const std::string &text);  // printable; "-" if it is empty
std::string host_facts(const wire::HostRow &row);
// "0.25" and "1.5 G"; "-" of a host that has not told.
std::string load_of(const wire::HostRow &row);
std::string free_memory_of(const wire::HostRow &row);
std::string resources_text(const wire::HostRow &row);  // "gpu 1/4, scratch_gb 0/200": in use, and offered
// The summary, then a line for each reason, its hint below.
std::string explanation_text(const std::string &name, const wire::Explanation &why);
// What each host said of it when its program could not be started there: "NAME: words".
std::vector<std::string> failed_starts(const wire::GrainRow &row);

}  // namespace dcs::commands
