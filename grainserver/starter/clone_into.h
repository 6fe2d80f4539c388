#pragma once
// A child in a control group of version 2 from its first instruction on, for which libc has no function. To move it
// there afterwards takes the kernel 10 to 20 ms, if it did not move another just before.
#include <span>

#include <sys/types.h>

namespace dcs::starter {

// As clone(2) with `flags`, which name no signal: the child's end sends SIGCHLD. The child calls `run(argument)` on
// `stack`, and that does not return. `group`: a descriptor of the group's directory. -1 with errno: there is no child,
// as the kernel refuses it or does not know how (before Linux 5.7), or this kind of machine is unknown here (ENOSYS).
pid_t clone_into(int group, int flags, std::span<char> stack, void (*run)(const void *), const void *argument) noexcept;

}  // namespace dcs::starter
