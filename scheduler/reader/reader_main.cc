#include <cerrno>
#include <csignal>
#include <new>
#include <set>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "daemon/log.h"
#include "daemon/privileges.h"
#include "scheduler/reader/reader.h"
#include "wire/import_rows.h"

namespace dcs::reader {
namespace {

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

void run_reader(int socket) {
    const Status s = settle_reader(socket);
    if (!s) log_error(s.text);
    Decoders decoders;
    const auto answer = [&](std::string_view packet, int *fd) { return decoders.answer(packet, fd); };
    if (s) serve_side_process(socket, patience_s, answer);
    ::_exit(s ? 0 : 1);
}

}  // namespace dcs::reader
