#include "grainserver/files/syscall_filter.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>

#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/call_program.h"
#include "base/require.h"
#include "grainserver/files/grain_calls.h"

namespace dcs::files {
namespace {
// System call numbers of one architecture; -1: it has no such call.
struct Numbers {
    std::uint32_t arch;
    std::vector<int> allowed;  // besides the common ones
    std::initializer_list<int> tracing;
    int ptrace, clone, unshare, ioctl, socket, socketcall;
};

// Numbers from 424 on are common to all architectures; headers of older systems lack some.
constexpr int nr_clone3 = 435, nr_pidfd_getfd = 438;
// pidfd_send_signal; pidfd_open, close_range, openat2, faccessat2, process_madvise, epoll_pwait2, landlock_*,
// memfd_secret, futex_waitv, set_mempolicy_home_node, cachestat, fchmodat2, map_shadow_stack, futex_*
constexpr int common_calls[] = {424, 434, 436, 437, 439, 440, 441, 444, 445, 446,
                                447, 449, 450, 451, 452, 453, 454, 455, 456};

#define NUMBER(name) SYS_##name,
const Numbers own_numbers{own_machine,
                          {DCS_GRAIN_CALLS(NUMBER) DCS_GRAIN_CALLS_64(NUMBER)
#if defined(__x86_64__)
                               DCS_GRAIN_CALLS_X86(NUMBER)
#endif
                          },
                          {SYS_process_vm_readv, SYS_process_vm_writev, nr_pidfd_getfd, SYS_kcmp},
                          SYS_ptrace,
                          SYS_clone,
                          SYS_unshare,
                          SYS_ioctl,
                          SYS_socket,
                          -1};
#undef NUMBER

#if defined(__x86_64__)
const Numbers numbers_of_i386{AUDIT_ARCH_I386,
                              grain_calls_of_i386(),
                              {347 /* process_vm_readv */, 348 /* process_vm_writev */, nr_pidfd_getfd, 349 /* kcmp */},
                              26,
                              120,
                              310,
                              54,
                              359,
                              102};
#endif

constexpr std::uint32_t new_namespaces =
    CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP |
    0x80u /* CLONE_NEWTIME; in clone() part of the signal number, which is below it */;
constexpr std::uint32_t traceme = 0;             // PTRACE_TRACEME: permits tracing by the parent
constexpr std::uint32_t subcode_linux = 0x541c;  // TIOCLINUX: like TIOCSTI, puts input into a terminal
constexpr std::uint32_t x32_bit = 0x40000000;    // marks the x32 table of numbers on x86_64
constexpr std::uint32_t first_unknown = 457;     // of the numbers common to all architectures: Linux 6.8
constexpr std::uint32_t call_socket = 1;         // of socketcall, whose other arguments are in memory
constexpr std::uint32_t denied = SECCOMP_RET_ERRNO | EPERM, absent = SECCOMP_RET_ERRNO | ENOSYS;
constexpr std::uint32_t no_network = SECCOMP_RET_ERRNO | EACCES;

void about_flags(CallProgram &p, int number, std::uint32_t flags) {
    const std::size_t begun = p.begin_if(static_cast<std::uint32_t>(number));
    p.load_argument(0);
    p.answer_if_any(flags, denied);
    p.answer(SECCOMP_RET_ALLOW);
    p.end(begun);
}

// Two comparisons for each row of numbers, from the highest down.
void about_lists(CallProgram &p, std::vector<int> numbers) {
    numbers.insert(numbers.end(), std::begin(common_calls), std::end(common_calls));
    std::sort(numbers.begin(), numbers.end(), std::greater<>());
    for (std::size_t i = 0; i < numbers.size();) {
        const int last = numbers[i];
        int first = last;
        while (++i < numbers.size() && numbers[i] >= first - 1) first = numbers[i];
        p.answer_if_least(static_cast<std::uint32_t>(last) + 1, denied);
        p.answer_if_least(static_cast<std::uint32_t>(first), SECCOMP_RET_ALLOW);
    }
    p.answer(denied);
}

void block(CallProgram &p, const Numbers &n, const FilterWish &wish) {
    const std::size_t begun = p.begin_if(n.arch);
    p.load_number();
    if (n.arch == AUDIT_ARCH_X86_64) p.answer_if_any(x32_bit, absent);
    // What kernels have got since was not looked at; programs have to do without it on older ones, too.
    p.answer_if_least(first_unknown, absent);
    // Its flags are in memory, which a filter cannot read: without clone3, programs use clone.
    p.answer_if(static_cast<std::uint32_t>(nr_clone3), absent);
    about_flags(p, n.clone, new_namespaces & ~0xffu);
    about_flags(p, n.unshare, new_namespaces);
    p.about_call(n.ioctl, 1, {TIOCSTI, subcode_linux}, denied, SECCOMP_RET_ALLOW);
    const std::uint32_t others = wish.may_trace ? SECCOMP_RET_ALLOW : denied;
    for (const int number : n.tracing) p.answer_if(static_cast<std::uint32_t>(number), others);
    p.about_call(n.ptrace, 0, {traceme}, SECCOMP_RET_ALLOW, others);
    p.about_sockets(n.socket, true, wish.network, no_network);
    if (n.socketcall >= 0) p.about_call(n.socketcall, 0, {call_socket}, no_network, SECCOMP_RET_ALLOW);
    about_lists(p, n.allowed);
    p.end(begun);
}
}  // namespace

std::vector<sock_filter> syscall_filter(const FilterWish &wish) {
    if (own_machine == 0) return {};
    CallProgram p;
    p.load_machine();
    block(p, own_numbers, wish);
#if defined(__x86_64__)
    block(p, numbers_of_i386, wish);
#endif
    p.answer(absent);  // calls of another architecture
    DCS_REQUIRE(p.code.size() <= BPF_MAXINSNS, "the filter does not exceed BPF_MAXINSNS");
    return std::move(p.code);
}

bool filter_available() {
    const std::uint32_t action = SECCOMP_RET_ERRNO;
    return own_machine != 0 && ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int put_filter_on(const std::vector<sock_filter> &program) noexcept {
    const sock_fprog all{static_cast<unsigned short>(program.size()), const_cast<sock_filter *>(program.data())};
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) == 0 ? 0 : errno;
}

}  // namespace dcs::files
