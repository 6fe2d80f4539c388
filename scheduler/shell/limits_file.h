#pragma once
// What each user may load the scheduler with (turn::UserLimits) as a text file: `NAME NUMBER`, one limit a line, `#`
// begins a comment. docs/SECURITY.md lists the names.
#include <string>
#include <string_view>

#include "base/status.h"
#include "scheduler/turn/user_limits.h"

namespace dcs::shell {

// All of them, or the first error as "file:line: what is wrong" (invalid). `file` is for it.
Result<turn::UserLimits> parse_limits(std::string_view text, const std::string &file);

}  // namespace dcs::shell
