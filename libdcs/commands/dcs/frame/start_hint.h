#pragma once
// What to do when the scheduler of a pool does not answer.
#include <string>

namespace dcs::commands {

// By what lies there: whether there is a pool, who made it, and whether the caller may call there at all. Never a
// command that would change the pool's size or its owner.
std::string start_hint(const std::string &directory);
// Of the user's own pool, on a host that has one for all: how commands use that. Else empty.
std::string other_pool(const std::string &directory);

}  // namespace dcs::commands
