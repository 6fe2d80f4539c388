#pragma once
// Which processes belong to a grain besides its first one, and how they are ended.
#include <string>
#include <vector>

#include <sys/types.h>

#include "grainserver/files/process_identity.h"

namespace dcs::launcher {

// Our children, alive or zombie, as the kernel lists them. We are the subreaper: whatever a grain's
// ended processes left behind shows up here.
std::vector<pid_t> own_children();

// KILL to exactly this process: start time checked through a pidfd, so never to a later one of its pid.
void kill_exactly(const files::ProcessStat &process);

// The value that every process of a grain inherits, unless it cleared its environment.
std::string cookie(const std::string &grain_directory);

// Does a process carry the cookie? `unclear`: it shows no environment at all, because it has none or
// because it is in the middle of an exec, which on a busy host may take a while.
enum class Carries : std::uint8_t { no, yes, unclear };
Carries carries(pid_t pid, const std::string &mark);

// Ends a tree whose launcher is dead: its first process if it is still the one of (pid, start time),
// that one's session, and every process that carries the cookie. Waits until they are gone, at most
// `seconds`; false if some are left (in the kernel's uninterruptible sleep).
bool kill_foreign_tree(pid_t pid, std::uint64_t start_time, const std::string &grain_directory, int seconds);

}  // namespace dcs::launcher
