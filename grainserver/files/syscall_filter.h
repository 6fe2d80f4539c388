#pragma once
// A filter of system calls for grains (seccomp): what grain_calls.h lists is permitted. The rest, which no computation
// needs, fails with EPERM, which puts bugs in those parts of the kernel out of a grain's reach.
#include <vector>

#include <linux/filter.h>

#include "base/confinement.h"

namespace dcs::files {

struct FilterWish {
    bool may_trace = false;  // other means restrict ptrace and related calls
    bool network = true;     // false: only Unix sockets
    bool clone3 = false;     // for a process that starts grains, which inherit the filter and deny_clone3()
};
inline FilterWish filter_wish(Rungs rungs, bool clone3 = false) {
    return {(rungs & rung_scope) != 0, (rungs & rung_no_network) == 0, clone3};
}
// Also for 32-bit calls of an x86_64 process. Empty: this machine type is not supported.
std::vector<sock_filter> syscall_filter(const FilterWish &wish);
// Whether the kernel supports it.
bool filter_available();
// Applies to this process and its descendants, irrevocably; needs no_new_privs. An errno, or 0. Allocates nothing.
int put_filter_on(const std::vector<sock_filter> &program) noexcept;
// The same, of a filter that denies clone3 alone.
int deny_clone3() noexcept;

}  // namespace dcs::files
