#pragma once
// A filter of system calls for grains (seccomp). What no computation needs is refused with EPERM, so that mistakes
// in those parts of the kernel are out of a grain's reach; everything else goes through unseen.
#include <vector>

#include <linux/filter.h>

namespace dcs::files {

struct FilterWish {
    bool may_trace = false;  // ptrace and its kin are fenced by other means
    bool network = true;     // false: no sockets but Unix ones
};
// Also for 32-bit calls of an x86_64 process. Empty: there is none for this kind of machine.
std::vector<sock_filter> syscall_filter(const FilterWish &wish);
// The kernel can do it.
bool filter_available();
// For this process and all that it starts, for good; no new privileges must be set. An errno, or 0. Allocates nothing.
int put_filter_on(const std::vector<sock_filter> &program) noexcept;

}  // namespace dcs::files
