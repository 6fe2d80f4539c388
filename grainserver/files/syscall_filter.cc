#include "grainserver/files/syscall_filter.h"

#include <cerrno>
#include <cstdint>
#include <initializer_list>

#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/call_program.h"
#include "base/require.h"

namespace dcs::files {
namespace {
// System call numbers of one architecture; -1: it has no such call.
struct Numbers {
    std::uint32_t arch;
    std::initializer_list<int> never, tracing;
    int ptrace, clone, clone3, unshare, ioctl, socket, socketcall;
};

// Numbers from 424 on are common to all architectures; headers of older systems lack some.
constexpr int nr_pidfd_getfd = 438, nr_clone3 = 435, nr_mount_setattr = 442, nr_quotactl_fd = 443;

// clang-format off
const Numbers own_numbers{
    own_machine,
    {SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_move_mount, SYS_open_tree, SYS_fsopen, SYS_fsconfig,
     SYS_fsmount, SYS_fspick, nr_mount_setattr, SYS_swapon, SYS_swapoff, SYS_quotactl, nr_quotactl_fd, SYS_acct,
     SYS_reboot, SYS_kexec_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_bpf, SYS_perf_event_open,
     SYS_add_key, SYS_request_key, SYS_keyctl, SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter,
     SYS_io_uring_register, SYS_setns, SYS_open_by_handle_at, SYS_fanotify_init, SYS_lookup_dcookie, SYS_syslog,
     SYS_vhangup, SYS_sethostname, SYS_setdomainname, SYS_settimeofday, SYS_adjtimex, SYS_clock_settime,
     SYS_clock_adjtime, SYS_nfsservctl,
#if defined(SYS_kexec_file_load)
     SYS_kexec_file_load,
#endif
#if defined(__x86_64__)
     SYS_iopl, SYS_ioperm,
#endif
    },
    {SYS_process_vm_readv, SYS_process_vm_writev, nr_pidfd_getfd, SYS_kcmp},
    SYS_ptrace, SYS_clone, nr_clone3, SYS_unshare, SYS_ioctl, SYS_socket, -1};
// clang-format on

#if defined(__x86_64__)
// The table of "int 0x80", which any process can use, whatever it was compiled for.
// clang-format off
const Numbers numbers_of_i386{
    AUDIT_ARCH_I386,
    {21 /* mount */, 22 /* umount */, 52 /* umount2 */, 217 /* pivot_root */, 61 /* chroot */, 429 /* move_mount */,
     428 /* open_tree */, 430 /* fsopen */, 431 /* fsconfig */, 432 /* fsmount */, 433 /* fspick */, nr_mount_setattr,
     87 /* swapon */, 115 /* swapoff */, 131 /* quotactl */, nr_quotactl_fd, 51 /* acct */, 88 /* reboot */,
     283 /* kexec_load */, 128 /* init_module */, 350 /* finit_module */, 129 /* delete_module */, 357 /* bpf */,
     336 /* perf_event_open */, 286 /* add_key */, 287 /* request_key */, 288 /* keyctl */, 374 /* userfaultfd */,
     425 /* io_uring_setup */, 426 /* io_uring_enter */, 427 /* io_uring_register */, 346 /* setns */,
     342 /* open_by_handle_at */, 338 /* fanotify_init */, 253 /* lookup_dcookie */, 103 /* syslog */,
     111 /* vhangup */, 74 /* sethostname */, 121 /* setdomainname */, 79 /* settimeofday */, 25 /* stime */,
     124 /* adjtimex */, 264 /* clock_settime */, 404 /* clock_settime64 */, 343 /* clock_adjtime */,
     405 /* clock_adjtime64 */, 169 /* nfsservctl */, 110 /* iopl */, 101 /* ioperm */, 113 /* vm86old */,
     166 /* vm86 */},
    {347 /* process_vm_readv */, 348 /* process_vm_writev */, nr_pidfd_getfd, 349 /* kcmp */},
    26, 120, nr_clone3, 310, 54, 359, 102};
// clang-format on
#endif

constexpr std::uint32_t new_namespaces =
    CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP |
    0x80u /* CLONE_NEWTIME; in clone() part of the signal number, which is below it */;
constexpr std::uint32_t traceme = 0;             // PTRACE_TRACEME: permits tracing by the parent
constexpr std::uint32_t subcode_linux = 0x541c;  // TIOCLINUX: like TIOCSTI, puts input into a terminal
constexpr std::uint32_t x32_bit = 0x40000000;    // marks the x32 table of numbers on x86_64
constexpr std::uint32_t first_unknown = 457;     // of the numbers common to all architectures: Linux 6.8
constexpr std::uint32_t denied = SECCOMP_RET_ERRNO | EPERM, absent = SECCOMP_RET_ERRNO | ENOSYS;
constexpr std::uint32_t no_network = SECCOMP_RET_ERRNO | EACCES;

void about_flags(CallProgram &p, int number, std::uint32_t flags) {
    const std::size_t begun = p.begin_if(static_cast<std::uint32_t>(number));
    p.load_argument(0);
    p.answer_if_any(flags, denied);
    p.answer(SECCOMP_RET_ALLOW);
    p.end(begun);
}

void block(CallProgram &p, const Numbers &n, const FilterWish &wish) {
    const std::size_t begun = p.begin_if(n.arch);
    p.load_number();
    if (n.arch == AUDIT_ARCH_X86_64) p.answer_if_any(x32_bit, absent);
    // What kernels have got since was not looked at; programs have to do without it on older ones, too.
    p.answer_if_least(first_unknown, absent);
    for (const int number : n.never) p.answer_if(static_cast<std::uint32_t>(number), denied);
    // Its flags are in memory, which a filter cannot read: without clone3, programs use clone.
    p.answer_if(static_cast<std::uint32_t>(n.clone3), absent);
    about_flags(p, n.clone, new_namespaces & ~0xffu);
    about_flags(p, n.unshare, new_namespaces);
    p.about_call(n.ioctl, 1, {TIOCSTI, subcode_linux}, denied, SECCOMP_RET_ALLOW);
    if (!wish.may_trace) {
        for (const int number : n.tracing) p.answer_if(static_cast<std::uint32_t>(number), denied);
        p.about_call(n.ptrace, 0, {traceme}, SECCOMP_RET_ALLOW, denied);
    }
    // The socket families that programs use; the others are seldom reviewed.
    if (wish.network) {
        p.about_call(n.socket, 0, {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}, SECCOMP_RET_ALLOW, no_network);
    } else {
        p.about_call(n.socket, 0, {AF_UNIX}, SECCOMP_RET_ALLOW, no_network);
        if (n.socketcall >= 0) p.answer_if(static_cast<std::uint32_t>(n.socketcall), no_network);
    }
    p.answer(SECCOMP_RET_ALLOW);
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
