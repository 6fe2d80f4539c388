#include "scheduler/reader/reader.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/planted.h"
#include "daemon/log.h"
#include "daemon/privileges.h"
#include "process/call_program.h"
#include "process/landlock.h"
#include "process/spawn.h"
#include "wire/import_rows.h"

namespace dcs::reader {
namespace {

constexpr std::size_t head_bytes = 12;  // code, length
constexpr std::size_t at_once = 256 * 1024;

bool send_stream(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(socket, bytes.data(), std::min(bytes.size(), at_once), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

// Until the decoder is gone; no more than `most`.
std::string receive_all(int socket, std::size_t most) {
    std::string all;
    for (;;) {
        const std::size_t had = all.size();
        all.resize(had + std::min(at_once, most + 1 - had));
        const ssize_t n = ::recv(socket, all.data() + had, all.size() - had, 0);
        all.resize(had + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0 || all.size() > most) return all;
    }
}

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
    SideAnswer answer(std::string_view bytes, int *fd) {
        const auto packet = read_packet(bytes);
        if (!packet) return {fail(Code::invalid, "the reader does not know such a request"), ""};
        return packet->ask == static_cast<std::uint32_t>(Ask::begin) ? begin(packet->bytes, fd) : end(packet->pid);
    }

private:
    SideAnswer begin(std::uint64_t bytes, int *fd) {
        int pair[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
            return {fail_errno(Code::io_error, "a socket to a decoder", errno), ""};
        const pid_t pid = ::fork();
        if (pid == 0) decode_here(pair[1], bytes);
        const int error = errno;
        ::close(pair[1]);
        *fd = pair[0];
        if (pid < 0) return {fail_errno(Code::io_error, "a process to decode an import", error), ""};
        mine_.insert(pid);
        return {Status::ok(), std::to_string(pid)};
    }

    SideAnswer end(std::uint32_t number) {
        const auto pid = static_cast<pid_t>(number);
        if (mine_.erase(pid) == 0) return {fail(Code::not_found, "there is no such decoder"), ""};
        ::kill(pid, SIGKILL);
        int status = 0;
        while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
        return {Status::ok(), WIFSIGNALED(status) ? "was killed by signal " + std::to_string(WTERMSIG(status))
                                                  : "ended with exit code " + std::to_string(WEXITSTATUS(status))};
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

std::optional<Packet> read_packet(std::string_view bytes) {
    Packet packet{};
    if (bytes.size() != sizeof packet) return {};
    std::memcpy(&packet, bytes.data(), sizeof packet);
    const bool begin =
        packet.ask == static_cast<std::uint32_t>(Ask::begin) && packet.pid == 0 && packet.bytes <= limits::import_bytes;
    const bool end = packet.ask == static_cast<std::uint32_t>(Ask::end) && packet.bytes == 0;
    return begin || end ? std::optional<Packet>(packet) : std::nullopt;
}

std::string envelope_head(Code code, std::uint64_t bytes) {
    ByteWriter w;
    w.u32(static_cast<std::uint32_t>(code));
    w.u64(bytes);
    return std::move(w.bytes());
}

std::optional<Result<std::string>> open_envelope(std::string bytes) {
    ByteReader in(bytes);
    const std::uint32_t code = in.u32();
    const std::uint64_t length = in.u64();
    if (!in.good() || code > static_cast<std::uint32_t>(Code::last) || length != in.left()) return {};
    bytes.erase(0, head_bytes);
    if (static_cast<Code>(code) == Code::ok) return Result<std::string>(std::move(bytes));
    // The words of a process that a user may have in hand: for that user, and not many.
    return Result<std::string>(fail(static_cast<Code>(code), bytes.substr(0, limits::message_bytes)));
}

Result<std::unique_ptr<Reader>> Reader::start() {
    auto process = SideProcess::start({"the scheduler's reader", "the scheduler"}, patience_s,
                                      [](int socket) { run_reader(socket); });
    if (!process) return process.status();
    return std::unique_ptr<Reader>(new Reader(std::move(*process)));
}

bool Reader::gone() const {
    pollfd polled{process_->fd(), 0, 0};
    return ::poll(&polled, 1, 0) > 0 && (polled.revents & (POLLHUP | POLLERR)) != 0;
}

Result<std::string> Reader::ask(Ask what, std::uint32_t pid, std::uint64_t bytes, Fd *socket) {
    const Packet packet{static_cast<std::uint32_t>(what), pid, bytes};
    return process_->call({reinterpret_cast<const char *>(&packet), sizeof packet}, socket);
}

Result<std::string> Reader::decode(std::string stream, const std::function<void(int)> &busy) {
    Fd socket;
    const auto number = ask(Ask::begin, 0, stream.size(), &socket);
    if (!number) return fail(number.status().code, "the import is refused: " + number.status().text);
    if (!socket)
        return fail(Code::limit, "the import is refused: the scheduler may open no more files, raise its ulimit -n");
    busy(socket.get());
    failpoint("reader.decode.begun");
    std::optional<std::string> answer;
    try {
        // A decoder that has refused the first half does not read the second.
        (void)send_stream(socket.get(), stream);
        const std::size_t most = head_bytes + wire::import_rows_bytes(stream.size());
        stream = {};
        answer = receive_all(socket.get(), most);
    } catch (const std::bad_alloc &) {  // here, and its decoder is ended as any other
    }
    busy(-1);
    const auto pid = static_cast<std::uint32_t>(std::strtoul(number->c_str(), nullptr, 10));
    const auto ended = ask(Ask::end, pid, 0, nullptr);
    if (!answer) return fail(Code::limit, "the import is refused: the scheduler has no memory for it");
    if (auto said = open_envelope(std::move(*answer))) return std::move(*said);
    return fail(Code::invalid, "the import is refused: the process that decoded it " +
                                   (ended ? *ended : "is gone: " + ended.status().text) +
                                   ", which concerns nothing else: if the file is an export that nothing has changed, "
                                   "tell the maintainers");
}

// ---- the reader's process; and its decoders, which are left with a socket, memory, and their own end ----

Status fence_decoder(int &socket, std::uint64_t bytes) {
    constexpr int only = 3;
    ::prctl(PR_SET_NAME, "dcs_decoder", 0, 0, 0);
    // Its words are no lines of the log; standard input is /dev/null.
    if (::dup2(STDIN_FILENO, STDERR_FILENO) < 0) return failed_fence("standard error");
    if (socket != only && ::dup3(socket, only, O_CLOEXEC) != only) return failed_fence("its socket");
    keep_descriptors({only});
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
    Decoders decoders;
    serve_side_process(s, socket, patience_s,
                       [&](std::string_view packet, int *fd) { return decoders.answer(packet, fd); });
}

}  // namespace dcs::reader
