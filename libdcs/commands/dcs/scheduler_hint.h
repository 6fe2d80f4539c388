#pragma once
// What to do when the scheduler of this call's pool does not answer.
#include <string>

namespace dcs::commands {

// By what lies in $DCS_DIR, which every call of `dcs` sets: whether there is a pool, who made it, and whether the
// caller may call there at all.
std::string scheduler_hint();
// Was the pool in that directory made by `dcs up`? Then that starts it again.
bool is_made_by_up(const std::string &directory);

}  // namespace dcs::commands
