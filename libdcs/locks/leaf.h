#pragma once
// A control group of its own for the tree of one run, where the host lets us make one without ceremony: a
// leaf of version 2 below our own group. It finds every process however it hides, and ends all at once.
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace dcs::locks {

// "dcs-lock-<16 hex digits>": the last part of the path of a leaf, so that no record can name another group.
std::string leaf_name(std::uint64_t cookie);

// The path of a new leaf; empty if there is none to be had. Removes what dead supervisors left, too.
std::string make_leaf(std::uint64_t cookie);
// Is `path` a leaf for this cookie, and there?
bool is_leaf(const std::string &path, std::uint64_t cookie);

std::vector<pid_t> leaf_members(const std::string &path);
void thaw_leaf(const std::string &path);
// All of it at once, where the kernel can (5.14 and later).
void kill_leaf(const std::string &path);
// Whoever is left in it moves to the group above first.
void remove_leaf(const std::string &path);

}  // namespace dcs::locks
