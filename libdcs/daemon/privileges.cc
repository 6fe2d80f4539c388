#include "daemon/privileges.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "daemon/log.h"
#include "process/call_program.h"
#include "process/landlock.h"

namespace dcs {
namespace {

// Those that are not there are left out. /proc/locks: who has our locks.
constexpr const char *files_of_the_system[] = {"/usr/lib",
                                               "/usr/lib32",
                                               "/usr/lib64",
                                               "/usr/share/zoneinfo",
                                               "/lib",
                                               "/lib64",
                                               "/etc/ld.so.cache",
                                               "/etc/localtime",
                                               "/dev/null",
                                               "/dev/urandom",
                                               "/proc/self",
                                               "/proc/locks",
                                               "/proc/sys/vm/overcommit_memory",
                                               "/sys/devices/system/cpu"};
constexpr int moves_since = 2;             // before it, nothing could be moved from one directory to another
constexpr unsigned capabilities_max = 64;  // of the form that the kernel takes
constexpr std::uint64_t reading = landlock::read_file | landlock::read_directory;
constexpr std::uint64_t writing = reading | landlock::write_file | landlock::truncate | landlock::remove_directory |
                                  landlock::remove_file | landlock::make_directory | landlock::make_file |
                                  landlock::move;

Status failed(const std::string &what, int error = errno) {
    return fail_errno(Code::io_error, "dropping privileges: " + what, error);
}

Status allow(int ruleset, const std::string &path, std::uint64_t rights) {
    const Fd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!fd) return Status::ok();
    struct stat st {};
    if (::fstat(fd.get(), &st) == 0 && !S_ISDIR(st.st_mode)) rights &= landlock::of_files;
    const int error = landlock::allow(ruleset, fd.get(), rights);
    return error == 0 ? Status::ok() : fail_errno(Code::io_error, "cannot restrict file access to " + path, error);
}

// Numbers from 424 on are the same everywhere; headers of older systems lack some.
constexpr int nr_pidfd_open = 434, nr_close_range = 436, nr_openat2 = 437, nr_epoll_pwait2 = 441, nr_new_ruleset = 444,
              nr_add_rule = 445, nr_restrict_self = 446, nr_futex_waitv = 449;
constexpr int truncates_known_since = 3;  // version of Landlock
constexpr std::uint32_t allowed = SECCOMP_RET_ALLOW, denied = SECCOMP_RET_ERRNO | EPERM;
constexpr std::uint32_t absent = SECCOMP_RET_ERRNO | ENOSYS;  // what libraries know how to do without
constexpr std::uint32_t x32_bit = 0x40000000;                 // another table of numbers on x86_64
constexpr std::uint32_t name_of_memory = 0x53564d41;          // PR_SET_VMA

// The system calls of a daemon that serves: everything that is not named here is gone.
// clang-format off
constexpr int whole[] = {
    // files, by what Landlock and their modes leave
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_close,
    SYS_fstat, SYS_newfstatat, SYS_statx, SYS_lseek, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync,
    SYS_sync_file_range, SYS_syncfs, SYS_getdents64, SYS_getcwd, SYS_mkdirat, SYS_unlinkat, SYS_renameat,
    SYS_renameat2, SYS_linkat, SYS_readlinkat, SYS_faccessat, SYS_dup, SYS_dup3, SYS_fcntl, SYS_flock, SYS_statfs,
    SYS_fstatfs, SYS_fadvise64, SYS_umask,
    // memory, threads, this process
    SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk, SYS_msync, SYS_mincore, SYS_membarrier,
    SYS_futex, nr_futex_waitv, SYS_set_robust_list, SYS_get_robust_list, SYS_set_tid_address, SYS_gettid, SYS_getpid,
    SYS_getppid, SYS_sched_yield, SYS_sched_getaffinity, SYS_exit, SYS_exit_group, SYS_getuid, SYS_geteuid,
    SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid, SYS_getgroups, SYS_getrusage, SYS_sysinfo, SYS_uname,
    SYS_times, SYS_getrandom, SYS_capget, SYS_wait4, SYS_restart_syscall,
#if defined(SYS_rseq)
    SYS_rseq,
#endif
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending, SYS_rt_sigtimedwait, SYS_rt_sigsuspend,
    SYS_sigaltstack, SYS_signalfd4,
    // clocks
    SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_nanosleep, SYS_clock_nanosleep, SYS_timerfd_create,
    SYS_timerfd_settime, SYS_timerfd_gettime,
    // waiting, and sockets that are open or are made below
    SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, nr_epoll_pwait2, SYS_eventfd2,
    SYS_pipe2, SYS_connect, SYS_bind, SYS_accept, SYS_accept4, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg,
    SYS_sendmmsg, SYS_recvmmsg, SYS_shutdown, SYS_getsockname, SYS_getpeername, SYS_setsockopt, SYS_getsockopt,
#if defined(__x86_64__)
    SYS_stat, SYS_lstat, SYS_access, SYS_mkdir, SYS_rmdir, SYS_unlink, SYS_rename, SYS_link, SYS_readlink, SYS_dup2,
    SYS_getdents, SYS_poll, SYS_select, SYS_epoll_create, SYS_epoll_wait, SYS_eventfd, SYS_pipe, SYS_time,
    SYS_getrlimit, SYS_arch_prctl,
#endif
};
// clang-format on

// Modes are no matter of Landlock. What is open for reading may become 0555: that opens nothing to a process that could
// not read it as this process can, and none can write to it. Root gets by without 0700.
constexpr std::uint32_t program_mode = 0555, own_mode = 0700;

void about_foreign_files(CallProgram &p) {
    p.answer_if(SYS_utimensat, allowed);
    p.answer_if(SYS_copy_file_range, allowed);
    p.about_call(SYS_ioctl, 1, {FIONBIO, FIONREAD, TCGETS, FICLONE}, allowed, denied);
    const bool root = ::geteuid() == 0;
    if (root) return p.about_call(SYS_fchmod, 1, {program_mode}, allowed, denied);
    p.about_call(SYS_fchmod, 1, {program_mode, own_mode}, allowed, denied);
    p.about_call(SYS_fchmodat, 2, {own_mode}, allowed, denied);
#if defined(__x86_64__)
    p.about_call(SYS_chmod, 1, {own_mode}, allowed, denied);
#endif
}

// These fail with EPERM; the rest does not exist. One of these in a log means more than a
// library that looks for what there is.
// clang-format off
constexpr int powers[] = {
    SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_setuid, SYS_setgid,
    SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_setfsuid, SYS_setfsgid, SYS_capset,
    SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_truncate, SYS_setxattr, SYS_fsetxattr, SYS_unshare,
    SYS_setns, SYS_mount, SYS_chroot, SYS_socketpair, SYS_tkill, SYS_rt_sigqueueinfo, SYS_setpriority,
    SYS_sched_setscheduler, SYS_bpf, SYS_keyctl,
#if defined(__x86_64__)
    SYS_chmod, SYS_chown, SYS_lchown, SYS_fork, SYS_vfork,
#endif
};
// clang-format on

// To cut a file off takes a right to write to it only since that version.
void about_opening(CallProgram &p, int number, unsigned flags, std::uint32_t answer) {
    const std::size_t begun = p.begin_if(static_cast<std::uint32_t>(number));
    p.load_argument(flags);
    p.mask(O_ACCMODE | O_TRUNC);
    p.answer_if(O_RDONLY | O_TRUNC, denied);
    p.answer(answer);
    p.end(begun);
}

void about_threads(CallProgram &p, bool children) {
    constexpr std::uint32_t namespaces =
        CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
    const std::size_t begun = p.begin_if(SYS_clone);
    p.load_argument(0);
    if (children) {
        p.answer_if_any(namespaces, denied);
        p.answer(allowed);
    }
    p.answer_if_any(CLONE_THREAD, allowed);
    p.answer(denied);
    p.end(begun);
}

// What a process of this program needs to give up more, and what ends it.
void about_children(CallProgram &p) {
    for (const int number : {SYS_socketpair, SYS_seccomp, SYS_setitimer})
        p.answer_if(static_cast<std::uint32_t>(number), allowed);
    for (const int number : {nr_new_ruleset, nr_add_rule, nr_restrict_self, nr_close_range})
        p.answer_if(static_cast<std::uint32_t>(number), allowed);
#if defined(__x86_64__)
    p.answer_if(SYS_alarm, allowed);
#endif
    p.about_call(SYS_kill, 1, {SIGKILL}, allowed, denied);
}

void about_owners(CallProgram &p) {
    for (const int number : {SYS_fchown, SYS_fchownat, SYS_fchmod, SYS_fchmodat, SYS_setitimer})
        p.answer_if(static_cast<std::uint32_t>(number), allowed);
#if defined(__x86_64__)
    for (const int number : {SYS_chmod, SYS_chown, SYS_alarm}) p.answer_if(static_cast<std::uint32_t>(number), allowed);
#endif
}

std::vector<sock_filter> call_filter(bool by_one_call, KeptCalls kept) {
    const auto own = static_cast<std::uint32_t>(::getpid());
    CallProgram p;
    p.load_machine();
    const std::size_t begun = p.begin_if(own_machine);
    p.load_number();
#if defined(__x86_64__)
    p.answer_if_any(x32_bit, absent);
    about_opening(p, SYS_open, 1, allowed);
#endif
    about_opening(p, SYS_openat, 2, allowed);
    if (by_one_call) p.answer_if(nr_openat2, allowed);
    about_threads(p, kept.children);
    const std::size_t sockets = p.begin_if(SYS_socket);
    p.answer_sockets(kept.unix_sockets, true, denied);
    p.end(sockets);
    if (kept.children) about_children(p);
    if (kept.owners) about_owners(p);
    p.about_call(SYS_kill, 0, {own}, allowed, denied);
    p.about_call(SYS_tgkill, 0, {own}, allowed, denied);
    p.about_call(SYS_prlimit64, 0, {0, own}, allowed, denied);
    if (kept.foreign_files) about_foreign_files(p);
    if (kept.process_ends) p.answer_if(nr_pidfd_open, allowed);
    if (kept.own_children)
        for (const int number : {SYS_waitid, SYS_getsid}) p.answer_if(static_cast<std::uint32_t>(number), allowed);
    p.about_call(SYS_ioctl, 1, {FIONBIO, FIONREAD, TCGETS}, allowed, denied);
    p.about_call(SYS_prctl, 0, {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_CAPBSET_READ, name_of_memory}, allowed,
                 denied);
    for (const int number : whole) p.answer_if(static_cast<std::uint32_t>(number), allowed);
    for (const int number : powers) p.answer_if(static_cast<std::uint32_t>(number), denied);
    p.end(begun);
    p.answer(absent);
    return std::move(p.code);
}

}  // namespace

Status give_up_capabilities(std::uint64_t keep) {
    // With 0 the kernel still hands the image to a program, if there is one in core_pattern; with 1 it does neither.
    rlimit core{};
    if (::getrlimit(RLIMIT_CORE, &core) != 0) return failed("core files");
    core.rlim_max = std::min<rlim_t>(core.rlim_max, 1);
    core.rlim_cur = core.rlim_max;
    if (::setrlimit(RLIMIT_CORE, &core) != 0) return failed("core files");
    // Only root has capabilities, and only root may drop them from the bounding set; where that was done before, the
    // right to it may be gone, and nothing can be gained any more.
    const bool final = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
    for (unsigned i = 0; ::geteuid() == 0 && i < capabilities_max; ++i)
        if (((keep >> i) & 1) == 0 && ::prctl(PR_CAPBSET_DROP, i, 0, 0, 0) != 0 && errno == EPERM && !final)
            if (::prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1) return failed("a capability of the bounding set");
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL)
        return failed("ambient capabilities");
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
    if (::syscall(SYS_capget, &header, sets) != 0) return failed("capabilities");
    for (unsigned half = 0; half < _LINUX_CAPABILITY_U32S_3; ++half) {
        sets[half].permitted &= static_cast<std::uint32_t>(keep >> (32 * half));
        sets[half].effective = sets[half].permitted;
        sets[half].inheritable = 0;
    }
    if (::syscall(SYS_capset, &header, sets) != 0) return failed("capabilities");
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? Status::ok() : failed("new privileges");
}

Result<bool> give_up_files(const std::vector<std::string> &directories, const std::vector<std::string> &readable) {
    const int version = landlock::version();
    if (version < moves_since) return false;
    const std::uint64_t known = landlock::rights_known(version);
    const Fd ruleset(landlock::new_ruleset(known, landlock::scopes_known(version)));
    if (!ruleset) return failed("files");
    Status s;
    for (const std::string &directory : directories)
        if (s) s = allow(ruleset.get(), directory, writing & known);
    for (const std::string &directory : readable)
        if (s) s = allow(ruleset.get(), directory, reading & known);
    for (const char *path : files_of_the_system)
        if (s) s = allow(ruleset.get(), path, reading & known);
    if (!s) return s;
    const int error = landlock::restrict_self(ruleset.get());
    return error == 0 ? Result<bool>(true) : failed("files", error);
}

std::vector<std::string> files_of_names() {
    return {"/etc/resolv.conf",
            "/etc/hosts",
            "/etc/host.conf",
            "/etc/nsswitch.conf",
            "/etc/gai.conf",
            "/etc/services",
            "/etc/protocols",
            "/run/systemd/resolve",
            "/run/resolvconf",
            "/run/NetworkManager/resolv.conf",
            "/run/NetworkManager/no-stub-resolv.conf"};
}

Status keep_only_files(const std::string &daemon, std::uint64_t capabilities,
                       const std::vector<std::string> &directories, const std::vector<std::string> &readable) {
    if (Status s = give_up_capabilities(capabilities); !s) return s;
    const Result<bool> given_up = give_up_files(directories, readable);
    if (given_up && !*given_up)
        log_warn("this kernel has no Landlock, so " + daemon + " keeps its account's rights to files; see SECURITY.md");
    return given_up.status();
}

Status keep_only_calls(KeptCalls kept) {
    const Result<bool> given_up = give_up_calls(kept);
    if (given_up && !*given_up) log_warn("this kernel cannot filter system calls (seccomp); see SECURITY.md");
    return given_up.status();
}

bool keeps_openat2() { return landlock::version() >= truncates_known_since; }

Result<bool> give_up_calls(KeptCalls kept) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)kept;
    return false;
#endif
    const std::uint32_t action = SECCOMP_RET_ERRNO;
    if (own_machine == 0 || ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) != 0) return false;
    const std::vector<sock_filter> code = call_filter(keeps_openat2(), kept);
    const sock_fprog all{static_cast<unsigned short>(code.size()), const_cast<sock_filter *>(code.data())};
    const long answer = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &all);
    if (answer == 0) return true;
    return fail_errno(Code::io_error, "dropping privileges: system calls", answer < 0 ? errno : ESRCH);
}

}  // namespace dcs
