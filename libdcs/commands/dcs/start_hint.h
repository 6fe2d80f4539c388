#pragma once
// What to do when the scheduler of a pool does not answer.
#include <string>

namespace dcs::commands {

// By what lies there: whether there is a pool, who made it, and whether the caller may call there at all.
std::string start_hint(const std::string &directory);
// Was the pool in that directory made by `dcs up`? Then that starts it again.
bool is_made_by_up(const std::string &directory);

}  // namespace dcs::commands
