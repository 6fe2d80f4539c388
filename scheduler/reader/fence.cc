// What a decoder is left with: a socket, memory, and its own end.
#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/planted.h"
#include "process/call_program.h"
#include "process/landlock.h"
#include "scheduler/reader/reader.h"

namespace dcs::reader {
namespace {

constexpr std::uint64_t memory_of_itself = 64u << 20, memory_of_a_byte = 6;
constexpr unsigned longest_s = 3600;  // by the clock, for machines that are busy with other things
// What is not here ends it.
constexpr int left_to_decoders[] = {SYS_read,  SYS_write, SYS_munmap,     SYS_mremap, SYS_brk,    SYS_madvise,
                                    SYS_futex, SYS_exit,  SYS_exit_group, SYS_getpid, SYS_gettid, SYS_rt_sigreturn};

Status failed_fence(const char *what) {
    return fail_errno(Code::io_error, std::string("fencing a decoder: ") + what, errno);
}

bool limit(__rlimit_resource_t what, std::uint64_t most) {
    rlimit now{};
    if (::getrlimit(what, &now) != 0) return false;
    now.rlim_max = std::min<rlim_t>(now.rlim_max, most);
    now.rlim_cur = std::min(now.rlim_cur, now.rlim_max);
    return ::setrlimit(what, &now) == 0;
}

std::vector<sock_filter> filter_of_decoders() {
    const std::uint32_t allowed = SECCOMP_RET_ALLOW, ended = SECCOMP_RET_KILL_PROCESS;
    CallProgram p;
    p.load_machine();
    const std::size_t begun = p.begin_if(own_machine);
    p.load_number();
    for (const int number : left_to_decoders) p.answer_if(static_cast<std::uint32_t>(number), allowed);
    p.about_call(SYS_mmap, 2, {PROT_READ | PROT_WRITE, PROT_NONE, PROT_READ}, allowed, ended);
    // Of abort(): that it is ended by that signal says more than that it asked for it.
    p.about_call(SYS_tgkill, 0, {static_cast<std::uint32_t>(::getpid())}, allowed, ended);
    p.answer_if(SYS_rt_sigprocmask, SECCOMP_RET_ERRNO | EPERM);
    p.end(begun);
    p.answer(ended);
    return std::move(p.code);
}

Status fence_off_files() {
    const int version = landlock::version();
    if (version == 0) return Status::ok();
    const Fd nothing(landlock::new_ruleset(landlock::rights_known(version), landlock::scopes_known(version)));
    if (!nothing || landlock::restrict_self(nothing.get()) != 0) return failed_fence("files");
    return Status::ok();
}

}  // namespace

Status fence_decoder(int &socket, std::uint64_t bytes) {
    constexpr int only = 3;
    ::prctl(PR_SET_NAME, "dcs_decoder", 0, 0, 0);
    // Its words are no lines of the log; standard input is /dev/null.
    if (::dup2(STDIN_FILENO, STDERR_FILENO) < 0) return failed_fence("standard error");
    if (socket != only && ::dup3(socket, only, O_CLOEXEC) != only) return failed_fence("its socket");
    if (::syscall(SYS_close_range, only + 1, ~0u, 0) != 0)
        for (int fd = only + 1; fd < 1024; ++fd) ::close(fd);
    socket = only;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)bytes;
    return Status::ok();
#endif
    if (planted("reader.no_fence")) return Status::ok();
    // Where memory ends malloc would look for processors, to make room for threads; it shall just say so.
    ::mallopt(M_ARENA_MAX, 1);
    ::alarm(longest_s);
    if (Status s = fence_off_files(); !s) return s;
    const bool limited = limit(RLIMIT_DATA, memory_of_itself + memory_of_a_byte * bytes) &&
                         limit(RLIMIT_CPU, seconds_for(bytes)) && limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_CORE, 0) &&
                         limit(RLIMIT_NPROC, 0) && limit(RLIMIT_NOFILE, 0);
    if (!limited) return failed_fence("limits");
    const std::uint32_t action = SECCOMP_RET_KILL_PROCESS;
    if (own_machine == 0 || ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) != 0) return Status::ok();
    const std::vector<sock_filter> code = filter_of_decoders();
    const sock_fprog all{static_cast<unsigned short>(code.size()), const_cast<sock_filter *>(code.data())};
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) == 0 ? Status::ok() : failed_fence("system calls");
}

}  // namespace dcs::reader
