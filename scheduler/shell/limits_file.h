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
// A missing file is the defaults. io_error if it cannot be read.
Result<turn::UserLimits> read_limits(const std::string &file);
Result<turn::UserLimits> limits_of(const Result<std::string> &text, const std::string &file);  // of what was read

}  // namespace dcs::shell
