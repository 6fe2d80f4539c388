#pragma once
// Exit codes of dcs_lock; all others are the command's own, or 128 + the signal that ended it.
namespace dcs::lock_command::exits {
constexpr int ok = 0;
constexpr int findings = 1;        // doctor
constexpr int busy = 75;           // or timed out; EX_TEMPFAIL, as in lckdo
constexpr int not_permitted = 77;  // the expired holder belongs to another user
constexpr int too_soon = 79;
constexpr int expired = 124;  // the command was ended at its limit, as in timeout(1)
constexpr int failed = 125;   // an error of dcs_lock, or wrong usage
constexpr int cannot_execute = 126;
constexpr int not_found = 127;
}  // namespace dcs::lock_command::exits
