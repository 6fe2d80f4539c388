#include "grainserver/starter/become_grain.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/planted.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/starter/clone_into.h"
#include "process/table.h"

namespace dcs::starter {
namespace {
// Written with the line ends of another system, so that its interpreter's name ends in a carriage return.
bool is_script_with_cr(const char *program) noexcept {
    char line[256];  // as much as the kernel reads
    const int fd = ::open(program, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const ssize_t n = fd < 0 ? -1 : ::read(fd, line, sizeof line);
    if (fd >= 0) ::close(fd);
    if (n < 3 || line[0] != '#' || line[1] != '!') return false;
    const void *end = std::memchr(line, '\n', static_cast<std::size_t>(n));
    return end != nullptr && static_cast<const char *>(end)[-1] == '\r';
}

[[noreturn]] void give_up(const Plan &plan, Step step, int error) noexcept {
    Failure failure{step, error, There::nothing};
    // Checked here with the grain's rights, so that the existence of files that it cannot see is not revealed.
    const char *program = step == Step::runner ? plan.runner : plan.program;
    struct stat st {};
    if ((step == Step::exec || step == Step::runner) && ::stat(program, &st) == 0)
        failure.program = S_ISDIR(st.st_mode)                             ? There::directory
                          : error == ENOENT && is_script_with_cr(program) ? There::script_with_cr
                                                                          : There::something;
    plan.told->failure = failure;
    ::_exit(127);
}

// The kernel has noted the time between two looks at its clock. To read it from /proc takes much longer, and is needed
// only if a tick ended between them.
std::uint64_t own_start(const Plan &plan) noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    const std::int64_t ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    const bool in_one_tick = plan.forked_ns / plan.tick_ns == ns / plan.tick_ns;
    const auto by_clock = static_cast<std::uint64_t>(ns / plan.tick_ns);
    if (in_one_tick && plan.start_by_clock) return by_clock;
    ProcessStat self;
    if (!read_stat(::getpid(), self)) give_up(plan, Step::pid_file, ESRCH);
    plan.told->clock_agrees = in_one_tick && self.start_time == by_clock;
    return self.start_time;
}

// Before the exec, so that every running grain can be found.
void write_pid_file(const Plan &plan) noexcept {
    char text[128];
    plan.told->start_ticks = own_start(plan);
    const std::size_t length =
        files::format_pid(text, sizeof text, plan.told->pid, plan.told->start_ticks, plan.boot_id);
    // As files::write_record(). After a failure the starter removes the file.
    const int fd = ::openat(plan.grain, files::pid_name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || length == 0) give_up(plan, Step::pid_file, errno);
    if (const int error = files::put_record(fd, text, length); error != 0) give_up(plan, Step::pid_file, error);
    ::close(fd);
}

// From linux/ioprio.h, which newer C++ compilers reject (a parameter named `class`).
constexpr int ioprio_who_process = 1, ioprio_class_idle = 3, ioprio_class_shift = 13;

// Courtesy; errors in these two do not stop the grain. The kernel's sacrifice when memory runs out. Set before the
// change of identity, after which the file belongs to root.
void be_dispensable() noexcept {
    const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (::write(fd, "500", 3) < 0) errno = 0;
    ::close(fd);
}

// Just before the exec: until then the starter waits for this process, and must not wait for all others of the host.
void be_modest() noexcept {
    ::setpriority(PRIO_PROCESS, 0, 19);
    const sched_param none{};
    if (::sched_setscheduler(0, SCHED_IDLE, &none) != 0) ::sched_setscheduler(0, SCHED_BATCH, &none);
    ::syscall(SYS_ioprio_set, ioprio_who_process, 0, ioprio_class_idle << ioprio_class_shift);
}

void join_groups(const Plan &plan, bool made_in_last) noexcept {
    for (int i = 0; i < plan.join_count - (made_in_last ? 1 : 0); ++i) {
        ssize_t n;
        do n = ::write(plan.joins[i], "0", 1);
        while (n < 0 && errno == EINTR);
        if (n != 1) give_up(plan, Step::group, errno);
    }
    if (plan.cpus != nullptr && ::sched_setaffinity(0, sizeof *plan.cpus, plan.cpus) != 0)
        give_up(plan, Step::cpus, errno);
}

void set_limits(const Plan &plan) noexcept {
    const auto limit = [](auto which, std::uint64_t value) {
        const rlimit both{value, value};
        ::setrlimit(which, &both);
    };
    limit(RLIMIT_CORE, 0);
    if (plan.file_bytes != 0) limit(RLIMIT_FSIZE, plan.file_bytes);
    if (plan.user_processes != 0) limit(RLIMIT_NPROC, plan.user_processes);
}

void enter_namespaces(const Plan &plan) noexcept {
    if (plan.contained) return;
    const uid_t uid = plan.change_user ? plan.uid : ::geteuid();
    const gid_t gid = plan.change_user ? plan.gid : ::getegid();
    if (const int error = files::enter_namespaces(*plan.confinement, plan.room, uid, gid); error != 0)
        give_up(plan, Step::confinement, error);
}

// Whether the groups are exactly those of the plan; the result of setgroups is not relied upon.
bool has_groups(const Plan &plan) noexcept {
    static gid_t groups[NGROUPS_MAX];  // the starter is suspended meanwhile
    const long n = ::syscall(SYS_getgroups, NGROUPS_MAX, groups);
    if (n != static_cast<long>(plan.group_count)) return false;
    for (long i = 0; i < n; ++i) {
        const gid_t *end = plan.groups + plan.group_count;
        if (std::find(plan.groups, end, groups[i]) == end) return false;
    }
    return true;
}

// Irrevocable: no process from here on gets other rights.
void change_identity(const Plan &plan) noexcept {
    if (plan.change_user) {
        if (::syscall(SYS_setgroups, plan.group_count, plan.groups) != 0 ||
            ::syscall(SYS_setresgid, plan.gid, plan.gid, plan.gid) != 0 ||
            ::syscall(SYS_setresuid, plan.uid, plan.uid, plan.uid) != 0)
            give_up(plan, Step::identity, errno);
        uid_t uids[3] = {};
        gid_t gids[3] = {};
        ::syscall(SYS_getresuid, &uids[0], &uids[1], &uids[2]);
        ::syscall(SYS_getresgid, &gids[0], &gids[1], &gids[2]);
        for (int i = 0; i < 3; ++i)
            if (uids[i] != plan.uid || gids[i] != plan.gid) give_up(plan, Step::identity, EPERM);
        if (!has_groups(plan)) give_up(plan, Step::identity, EPERM);
        if (::syscall(SYS_setresuid, 0, 0, 0) == 0) give_up(plan, Step::identity, EPERM);  // root must be dropped
    }
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up(plan, Step::identity, errno);
}

// From here on an exec stops before the program's first instruction. If its parent dies meanwhile, the child dies
// too: by this signal, or by the SIGTRAP pending from the exec. Without ptrace the program is only examined.
void only_prove(const Plan &plan) noexcept {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (::getppid() == plan.parent && ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0) return;
    if (::faccessat(AT_FDCWD, plan.contained ? plan.runner : plan.program, X_OK, AT_EACCESS) != 0)
        give_up(plan, Step::exec, errno);
    ::_exit(0);
}

// Checks what an exec of the program would check; its runner would start anyway, and fail as the grain.
void see_program(const Plan &plan) noexcept {
    struct stat st {};
    if (::stat(plan.program, &st) != 0) give_up(plan, Step::exec, errno);
    if (!S_ISREG(st.st_mode)) give_up(plan, Step::exec, EACCES);
    if (::faccessat(AT_FDCWD, plan.program, X_OK, AT_EACCESS) != 0) give_up(plan, Step::exec, errno);
}

// To make a file takes the kernel longer than all else here. -1: it is not as the earlier grain found it.
int open_emptied(const Plan &plan, const char *name) noexcept {
    const int fd = ::openat(plan.room, name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return -1;
    struct stat st {};
    const bool same = ::fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == ::geteuid() &&
                      (st.st_mode & 07777) == 0600;
    const bool empty = same && (st.st_size == 0 || ::ftruncate(fd, 0) == 0);
    if (empty && ::fcntl(fd, F_SETFL, O_APPEND) == 0) return fd;
    ::close(fd);
    return -1;
}

// With the grain's own rights, because other processes of its user may have changed its room.
void open_streams(const Plan &plan) noexcept {
    const int in = ::openat(plan.room, files::input_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (in < 0 || ::fcntl(in, F_SETFL, 0) != 0 || ::dup2(in, 0) < 0) give_up(plan, Step::streams, errno);
    int to = 1;
    for (const char *name : {plan.out, plan.err}) {
        int fd = plan.used_again ? open_emptied(plan, name) : -1;
        if (fd < 0) {
            ::unlinkat(plan.room, name, 0);  // left by prove_grain
            fd = ::openat(plan.room, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        }
        if (fd < 0 || ::dup2(fd, to++) < 0) give_up(plan, Step::streams, errno);
    }
}

// Not by what /proc links to: a process of the same login outside of the grain's mounts (/proc/PID/root) would lead out
// of them, and the kernel does not deny such processes to it yet.
void enter_directory(const Plan &plan) noexcept {
    if (plan.directory != nullptr && !plan.contained) {
        open_how how{};
        how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
        how.resolve = planted("starter.keeps_descriptors") ? 0 : RESOLVE_NO_MAGICLINKS;
        const auto fd = static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, plan.directory, &how, sizeof how));
        const bool old = fd < 0 && errno == ENOSYS;
        if (old ? ::chdir(plan.directory) != 0 : fd < 0 || ::fchdir(fd) != 0) give_up(plan, Step::directory, errno);
        return;
    }
    const auto open = [&] {
        return ::openat(plan.room, files::work_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    };
    int work = open();
    if (work < 0 && errno == ENOENT) {
        ::mkdirat(plan.room, files::work_name, 0700);
        work = open();
    }
    if (work < 0 || ::fchdir(work) != 0) give_up(plan, Step::directory, errno);
}

// The working directory and the program may be named by /proc/self/fd, and a descriptor of the starter, opened outside
// of the grain's mounts, would lead out of them. So the child has its room, its image or ruleset, and nothing else.
void close_others(const Plan &plan) noexcept {
    if (planted("starter.keeps_descriptors")) return;
    const int other = plan.contained ? plan.archive : plan.confinement->ruleset.get();
    const auto close_from = [&](int first, int last) {
        if (first > last) return;
        if (::syscall(SYS_close_range, static_cast<unsigned>(first), static_cast<unsigned>(last), 0u) == 0) return;
        rlimit most{};  // an older kernel
        ::getrlimit(RLIMIT_NOFILE, &most);
        for (int fd = first; fd <= last && static_cast<rlim_t>(fd) < most.rlim_max; ++fd) ::close(fd);
    };
    const int low = other < 0 ? plan.room : std::min(plan.room, other), high = std::max(plan.room, other);
    close_from(3, low - 1);
    close_from(low + 1, high - 1);
    close_from(high + 1, INT_MAX);
}

[[noreturn]] void become_grain(const Plan &plan, bool made_in_last) noexcept {
    plan.told->pid = ::getpid();
    ::setsid();
    be_dispensable();
    if (!plan.only_prove) write_pid_file(plan);
    // If the launcher died before this line, the next one may already have searched for grains without
    // finding this one. If it dies after it, the next one finds the pid file.
    if (::getppid() != plan.parent) give_up(plan, Step::orphaned, ECANCELED);
    set_limits(plan);
    enter_namespaces(plan);
    join_groups(plan, made_in_last);  // of the lowest priority: late, but it takes the server's rights
    close_others(plan);
    change_identity(plan);
    open_streams(plan);
    enter_directory(plan);
    ::syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
    if (plan.contained) ::fcntl(plan.archive, F_SETFD, 0);
    for (const int of_write : {SIGPIPE, SIGXFSZ}) ::signal(of_write, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (plan.runner != nullptr && !plan.contained) see_program(plan);
    if (plan.only_prove) only_prove(plan);
    const int error = plan.contained ? 0 : files::put_confinement_on(*plan.confinement, plan.filtered);
    if (error != 0) give_up(plan, Step::confinement, error);
    if (plan.modest) be_modest();
    ::umask(plan.umask);
    ::execve(plan.runner != nullptr ? plan.runner : plan.program, plan.argv, plan.env);
    give_up(plan, plan.runner != nullptr ? Step::runner : Step::exec, errno);
}
}  // namespace

[[gnu::noinline]] pid_t fork_grain(const Plan &plan) {
    alignas(16) static char stack[std::size_t{256} << 10];  // no child needs it longer than its parent is suspended
    const int memory = plan.own_memory && !planted("starter.shares_memory") ? 0 : CLONE_VM;
    const int flags = memory | CLONE_VFORK | (plan.parent == ::getpid() ? 0 : CLONE_PARENT);
    if (plan.group >= 0) {
        const auto run = [](const void *of) { become_grain(*static_cast<const Plan *>(of), true); };
        if (const pid_t pid = clone_into(plan.group, flags, {stack, sizeof stack}, run, &plan); pid > 0) return pid;
    }
    const auto run = [](void *of) -> int { become_grain(*static_cast<const Plan *>(of), false); };
    return ::clone(run, stack + sizeof stack, flags | SIGCHLD, const_cast<Plan *>(&plan));
}

}  // namespace dcs::starter
