#pragma once
// The pool's policy as a text file (core::Policy), one rule per line, `#` begins a comment:
//   fair_share on            users with fewer running grains go first (default: off)
//   sessions_per_user 20     open sessions of one user (default of this and the next: 0, no limit)
//   grains_per_user 100000   unfinished grains
//   running_per_user 64      grains that run at the same time
//   stored_mb_per_user 5000  what a user has stored: sessions and contents, in MB (default 0: no limit)
//   stored_share 50          and at most this percentage of the free space and the user's data (0: no limit)
//   probation 3              so many grains blamed on a host in a row: one at a time until one finishes
//   token_age 24h            that a control program's token stays which holds no session
//   session_age 30d          that a closed session stays (default: until it is removed by command)
//   user ann                 who may call, any number of lines (default: all)
//   deny bob                 who may not, and whose grains do not start; any number of lines
#include <string>
#include <string_view>

#include "base/status.h"
#include "scheduler/state/state.h"
#include "scheduler/turn/user_limits.h"

namespace dcs::shell {

// The whole policy, or its errors (settings_text.h). `file` is named in them.
Result<core::Policy> parse_policy(std::string_view text, const std::string &file);

// What each user may load the scheduler with (turn::UserLimits) as a text file: `NAME NUMBER`, one limit a line, `#`
// begins a comment. docs/SECURITY.md lists the names.
Result<turn::UserLimits> parse_limits(std::string_view text, const std::string &file);

}  // namespace dcs::shell
