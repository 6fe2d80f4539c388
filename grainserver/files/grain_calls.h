#pragma once
// The system calls that a grain may use, by name, so that each machine's header gives the numbers; C is applied to each.
// Calls with a condition (clone, ioctl, ioprio_set, socket, ptrace ...) are in syscall_filter.cc.

// clang-format off
#define DCS_GRAIN_CALLS(C) \
    C(read) C(write) C(close) C(fstat) C(lseek) C(pread64) C(pwrite64) C(readv) C(writev) C(preadv) C(pwritev) C(preadv2) \
    C(pwritev2) C(dup) C(dup3) C(fcntl) C(flock) C(fsync) C(fdatasync) C(sync) C(syncfs) C(sync_file_range) C(truncate) \
    C(ftruncate) C(fallocate) C(fadvise64) C(readahead) C(sendfile) C(splice) C(tee) C(vmsplice) C(copy_file_range) \
    C(getcwd) C(chdir) C(fchdir) C(umask) C(openat) C(mkdirat) C(mknodat) C(unlinkat) C(renameat) C(renameat2) C(linkat) \
    C(symlinkat) C(readlinkat) C(faccessat) C(statx) C(statfs) C(fstatfs) C(getdents64) C(utimensat) C(fchmod) C(fchmodat) \
    C(fchown) C(fchownat) C(name_to_handle_at) C(setxattr) C(lsetxattr) C(fsetxattr) C(getxattr) C(lgetxattr) \
    C(fgetxattr) C(listxattr) C(llistxattr) C(flistxattr) C(removexattr) C(lremovexattr) C(fremovexattr) \
    C(inotify_init1) C(inotify_add_watch) C(inotify_rm_watch) C(io_setup) C(io_destroy) C(io_getevents) C(io_pgetevents) \
    C(io_submit) C(io_cancel) \
    C(mmap) C(mprotect) C(munmap) C(brk) C(mremap) C(msync) C(mincore) C(madvise) C(mlock) C(mlock2) C(munlock) \
    C(mlockall) C(munlockall) C(remap_file_pages) C(mbind) C(set_mempolicy) C(get_mempolicy) C(migrate_pages) \
    C(move_pages) C(pkey_mprotect) C(pkey_alloc) C(pkey_free) C(memfd_create) C(membarrier) \
    C(shmget) C(shmat) C(shmctl) C(shmdt) C(semget) C(semctl) C(msgget) C(msgsnd) C(msgrcv) C(msgctl) C(mq_open) \
    C(mq_unlink) C(mq_timedsend) C(mq_timedreceive) C(mq_notify) C(mq_getsetattr) \
    C(execve) C(execveat) C(exit) C(exit_group) C(wait4) C(waitid) C(futex) C(set_robust_list) C(get_robust_list) \
    C(set_tid_address) C(restart_syscall) C(rseq) C(sched_yield) C(sched_setparam) C(sched_getparam) \
    C(sched_setscheduler) C(sched_getscheduler) C(sched_get_priority_max) C(sched_get_priority_min) \
    C(sched_rr_get_interval) C(sched_setaffinity) C(sched_getaffinity) C(sched_setattr) C(sched_getattr) C(getpriority) \
    C(setpriority) C(ioprio_get) C(getcpu) C(personality) C(prctl) C(seccomp) C(capget) C(capset) \
    C(getrlimit) C(setrlimit) C(prlimit64) C(getrusage) C(times) C(sysinfo) C(uname) C(getrandom) \
    C(getpid) C(getppid) C(gettid) C(getpgid) C(setpgid) C(getsid) C(setsid) C(getuid) C(geteuid) C(getgid) C(getegid) \
    C(getresuid) C(getresgid) C(getgroups) C(setuid) C(setgid) C(setreuid) C(setregid) C(setresuid) C(setresgid) \
    C(setfsuid) C(setfsgid) C(setgroups) \
    C(kill) C(tkill) C(tgkill) C(rt_sigaction) C(rt_sigprocmask) C(rt_sigreturn) C(rt_sigpending) C(rt_sigtimedwait) \
    C(rt_sigqueueinfo) C(rt_tgsigqueueinfo) C(rt_sigsuspend) C(sigaltstack) C(signalfd4) \
    C(nanosleep) C(clock_gettime) C(clock_getres) C(clock_nanosleep) C(gettimeofday) C(getitimer) C(setitimer) \
    C(timer_create) C(timer_settime) C(timer_gettime) C(timer_getoverrun) C(timer_delete) C(timerfd_create) \
    C(timerfd_settime) C(timerfd_gettime) \
    C(pselect6) C(ppoll) C(epoll_create1) C(epoll_ctl) C(epoll_pwait) C(eventfd2) C(pipe2) C(socketpair) C(connect) \
    C(bind) C(listen) C(accept4) C(sendto) C(recvfrom) C(sendmsg) C(recvmsg) C(sendmmsg) C(recvmmsg) C(shutdown) \
    C(getsockname) C(getpeername) C(setsockopt) C(getsockopt)

// The 64-bit machines have them, i386 only in part (by socketcall and ipc).
#define DCS_GRAIN_CALLS_64(C) C(accept) C(newfstatat) C(semop) C(semtimedop)

// Older ones, of x86_64 and i386.
#define DCS_GRAIN_CALLS_X86(C) \
    C(open) C(creat) C(stat) C(lstat) C(access) C(mkdir) C(rmdir) C(unlink) C(rename) C(link) C(symlink) C(readlink) \
    C(chmod) C(chown) C(lchown) C(mknod) C(utime) C(utimes) C(futimesat) C(getdents) C(dup2) C(pipe) C(poll) C(select) \
    C(epoll_create) C(epoll_wait) C(eventfd) C(signalfd) C(inotify_init) C(fork) C(vfork) C(pause) C(alarm) C(time) \
    C(getpgrp) C(arch_prctl) C(set_thread_area) C(get_thread_area)

#define DCS_GRAIN_CALLS_I386(C) \
    C(waitpid) C(oldstat) C(oldfstat) C(oldlstat) C(oldolduname) C(olduname) C(nice) C(signal) C(sigaction) C(sgetmask) \
    C(ssetmask) C(sigsuspend) C(sigpending) C(sigprocmask) C(sigreturn) C(readdir) C(_llseek) C(_newselect) C(ipc) \
    C(ugetrlimit) C(mmap2) C(truncate64) C(ftruncate64) C(stat64) C(lstat64) C(fstat64) C(fstatat64) C(fcntl64) \
    C(sendfile64) C(statfs64) C(fstatfs64) C(fadvise64_64) C(lchown32) C(chown32) C(fchown32) C(getuid32) C(geteuid32) \
    C(getgid32) C(getegid32) C(setuid32) C(setgid32) C(setreuid32) C(setregid32) C(getgroups32) C(setgroups32) \
    C(setresuid32) C(getresuid32) C(setresgid32) C(getresgid32) C(setfsuid32) C(setfsgid32) C(clock_gettime64) \
    C(clock_getres_time64) C(clock_nanosleep_time64) C(timer_gettime64) C(timer_settime64) C(timerfd_gettime64) \
    C(timerfd_settime64) C(utimensat_time64) C(pselect6_time64) C(ppoll_time64) C(io_pgetevents_time64) \
    C(recvmmsg_time64) C(mq_timedsend_time64) C(mq_timedreceive_time64) C(semtimedop_time64) C(rt_sigtimedwait_time64) \
    C(futex_time64) C(sched_rr_get_interval_time64)
// clang-format on

#include <vector>

namespace dcs::files {

// Of "int 0x80" on x86_64, which any process can use, whatever it was compiled for.
std::vector<int> grain_calls_of_i386();

}  // namespace dcs::files
