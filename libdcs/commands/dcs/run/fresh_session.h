#pragma once
// A new session under an unused number, for programs that do not care which.
#include <optional>
#include <string>

#include "commands/dcs/frame/failure.h"

namespace dcs::commands {

struct OpenedSession {
    int number = 0;
    std::optional<Failure> failure;
};

// Names this program `ident` (which no other one uses) and opens the caller's first unused number above those of
// removed sessions, as Python's Session does. At the limit of the pool's policy, what `dcs run --detach` left is closed
// where it has ended.
OpenedSession open_fresh_session(const std::string &ident);

void end_session(int session);  // nothing of it stays
// Ends the session of `dcs run`, and says where the outputs of its grain are.
void keep_session(int session, int grain);

inline constexpr const char *detached_ident = "dcs-run-detached-";  // begins that of `dcs run --detach`
std::string random_suffix();                                        // 8 hex digits

}  // namespace dcs::commands
