#pragma once
// Why a grain left a host: the words of event logs and rows, in the order of the scheduler's MoveReason.
#include <array>
#include <string_view>

namespace dcs::wire {

inline constexpr std::array<const char *, 19> move_reasons = {
    "failed",       "no_program",  "start_failed", "given_back", "usurped",        "host_dead",   "host_lost",
    "host_removed", "host_closed", "gap",          "restarted",  "session_closed", "longer_copy", "over_limit",
    "shut_out",     "thrashed",    "cannot_start", "given_up",   "host_limit"};

// Of the word with which a run ended: the grain has ended, too, and no move follows.
constexpr bool ends_grain(std::string_view word) {
    return word == "finished" || word == "killed" || word == "session_closed";
}

}  // namespace dcs::wire
