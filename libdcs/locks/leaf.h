#pragma once
// A control group for the tree of one run, where the host permits creating one without privileges or configuration: a
// leaf of version 2 below the caller's own group. It finds every process of the run, and kills all of them at once.
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace dcs::locks {

// "dcs-lock-<16 hex digits>", the last component of a leaf's path. A record with any other path is not accepted.
std::string leaf_name(std::uint64_t cookie);

// The path of a new leaf; empty if none can be created. Also removes the leaves of dead supervisors.
std::string make_leaf(std::uint64_t cookie);
// Whether `path` is an existing leaf of this cookie.
bool is_leaf(const std::string &path, std::uint64_t cookie);

std::vector<pid_t> leaf_members(const std::string &path);
void thaw_leaf(const std::string &path);
// Kills all members at once, if the kernel supports it (5.14 and later).
void kill_leaf(const std::string &path);
// Moves the remaining members to the parent group first.
void remove_leaf(const std::string &path);

}  // namespace dcs::locks
