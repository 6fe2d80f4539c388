#pragma once
// Environments of commands, "NAME=value".
#include <string_view>

namespace dcs {

// Whether this variable is another one at the next login, at another terminal or in the next batch job, and says
// nothing of the work.
bool is_of_the_login(std::string_view name);

}  // namespace dcs
