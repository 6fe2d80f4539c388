// The process of the reader; and its decoders, which are left with a socket, memory, and their own end.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <new>
#include <set>

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/planted.h"
#include "daemon/log.h"
#include "daemon/privileges.h"
#include "process/call_program.h"
#include "process/landlock.h"
#include "scheduler/reader/reader.h"
#include "wire/import_rows.h"

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

constexpr int patience_s = 30;  // for one answer; a decoder is not waited for

std::string receive_stream(int socket, std::uint64_t bytes) {
    std::string stream(bytes, '\0');
    for (std::size_t got = 0; got < stream.size();) {
        const ssize_t n = ::read(socket, stream.data() + got, stream.size() - got);
        if (n <= 0) ::_exit(1);  // the scheduler does not want it any more
        got += static_cast<std::size_t>(n);
    }
    return stream;
}

[[noreturn]] void decode_here(int socket, std::uint64_t bytes) {
    if (!fence_decoder(socket, bytes)) ::_exit(2);
    Result<std::string> rows = fail(Code::limit,
                                    "the import is refused: decoding it takes more memory than a process "
                                    "for it has, six times its bytes");
    try {
        rows = wire::rows_of_import(receive_stream(socket, bytes));
    } catch (const std::bad_alloc &) {  // said already
    }
    const std::string &words = rows ? *rows : rows.status().text;
    const bool sent = write_all(socket, envelope_head(rows.status().code, words.size())) && write_all(socket, words);
    ::_exit(sent ? 0 : 1);
}

class Decoders {
public:
    std::string answer(std::string_view bytes, int *fd) {
        const auto packet = read_packet(bytes);
        if (!packet) return side_answer(fail(Code::invalid, "the reader does not know such a request"), "");
        return packet->ask == static_cast<std::uint32_t>(Ask::begin) ? begin(packet->bytes, fd) : end(packet->pid);
    }

private:
    std::string begin(std::uint64_t bytes, int *fd) {
        int pair[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
            return side_answer(fail_errno(Code::io_error, "a socket to a decoder", errno), "");
        const pid_t pid = ::fork();
        if (pid == 0) decode_here(pair[1], bytes);
        const int error = errno;
        ::close(pair[1]);
        *fd = pair[0];
        if (pid < 0) return side_answer(fail_errno(Code::io_error, "a process to decode an import", error), "");
        mine_.insert(pid);
        return side_answer(Status::ok(), std::to_string(pid));
    }

    std::string end(std::uint32_t number) {
        const auto pid = static_cast<pid_t>(number);
        if (mine_.erase(pid) == 0) return side_answer(fail(Code::not_found, "there is no such decoder"), "");
        ::kill(pid, SIGKILL);
        int status = 0;
        while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
        return side_answer(Status::ok(), WIFSIGNALED(status)
                                             ? "was killed by signal " + std::to_string(WTERMSIG(status))
                                             : "ended with exit code " + std::to_string(WEXITSTATUS(status)));
    }

    std::set<pid_t> mine_;
};

Status settle_reader(int &socket) {
    if (Status s = settle_side_process(socket, "dcs_reader"); !s) return s;
    std::signal(SIGCHLD, SIG_DFL);  // it may be inherited as ignored, and then there is no exit status to collect
    // A service manager may have the scheduler ended last when memory is short. That is not meant for decoders.
    if (const Fd last{::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)}; last)
        if (::write(last.get(), "0", 1) != 1) log_debug("decoders are ended when the scheduler is");
    if (Status s = give_up_capabilities(); !s) return s;
    if (const auto fenced = give_up_files({}); !fenced) return fenced.status();
    if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return fail_errno(Code::io_error, "cannot make the process undumpable", errno);
    if (::nice(10) == -1) log_debug("decoders are as urgent as the scheduler");  // a service manager may forbid it
    return give_up_calls({.children = true}).status();
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

void run_reader(int socket) {
    const Status s = settle_reader(socket);
    if (!s) log_error(s.text);
    Decoders decoders;
    const auto answer = [&](std::string_view packet, int *fd) { return decoders.answer(packet, fd); };
    if (s) serve_side_process(socket, patience_s, answer);
    ::_exit(s ? 0 : 1);
}

}  // namespace dcs::reader
