#pragma once
// The host table as a text file: one host per line, `#` begins a comment.
//   local1 class=0x1 binary=x86_64-linux-gnu slots=1 interval=10 alert=30 limit=60 users=ann,bob
// Only the name is required; the rest (extended= too) has the defaults of core::HostConfig. Seconds
// may be fractional, with interval <= alert <= limit <= extended. Further settings:
//   class=gpu,0x8            names that a line `class gpu=0x4 fast=0x2` above declares, or masks
//   cores=8 memory=16384     what grains that ask for cores or megabytes may have
//   accounts=ann,bob         whose grains run under their own login there; the host's owner must agree
//   time_zone_offset=-60     minutes that its local time is ahead of the scheduler's
//   role=client              no grain server: `users` (default: all but root) may call from there by dcs_begin; a line
//                            of its own, with users= and nothing else
//   check=h1,h1:22 fileserver=nfs1:2049 gateway=[fe80::1]    asked when the host is overdue (see address.h)
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "scheduler/state/state.h"

namespace dcs::shell {

// The whole table, or its errors (settings_text.h). `file` is named in them.
Result<std::vector<core::HostConfig>> parse_host_table(std::string_view text, const std::string &file);

}  // namespace dcs::shell
