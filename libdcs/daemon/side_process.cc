#include "daemon/side_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/log.h"
#include "process/spawn.h"

namespace dcs {
namespace {

constexpr std::size_t code_size = 4;
constexpr int longer_s = 5;  // the other side ends by itself if it can

}  // namespace

Result<std::unique_ptr<SideProcess>> SideProcess::start(Words words, int patience_s,
                                                        const std::function<void(int)> &run) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return fail_errno(Code::io_error, "a socket to " + words.who, errno);
    const pid_t pid = ::fork();
    if (pid == 0) {
        run(pair[1]);
        ::_exit(1);
    }
    const int error = errno;
    ::close(pair[1]);
    const timeval patience{patience_s + longer_s, 0};
    ::setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (pid > 0) return std::unique_ptr<SideProcess>(new SideProcess(std::move(words), pair[0], pid));
    ::close(pair[0]);
    return fail_errno(Code::io_error, words.who + " cannot be started", error);
}

SideProcess::~SideProcess() {
    ::close(socket_);
    if (pid_ > 0) ::waitpid(pid_, nullptr, WNOHANG);  // it ends by itself, and is not waited for
}

bool SideProcess::gone() {
    const std::lock_guard<std::mutex> guard(mutex_);
    pollfd polled{socket_, POLLIN, 0};
    return !lost_.empty() || (::poll(&polled, 1, 0) > 0 && (polled.revents & (POLLHUP | POLLERR)) != 0);
}

std::string SideProcess::how_it_ended() {
    const std::lock_guard<std::mutex> guard(mutex_);
    int status = 0;
    // Its socket is closed a moment before it can be waited for.
    if (pid_ > 0 && lost_.find("does not answer") != std::string::npos) return lost_;
    while (pid_ > 0 && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    pid_ = 0;
    if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
    return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

Status SideProcess::stops_daemon() {
    if (!gone()) return Status::ok();
    return fail(Code::unreachable, words_.who + " " + how_it_ended() + ", so " + words_.daemon + " stops: restart it");
}

Status SideProcess::lose(const std::string &why) {
    if (lost_.empty()) lost_ = why;
    is_lost_ = true;
    return fail(Code::unreachable, words_.who + " " + lost_ + ": " + words_.daemon + " must be restarted");
}

Status SideProcess::distrust() {
    const std::lock_guard<std::mutex> guard(mutex_);
    return lose("sent an invalid answer");
}

Result<std::string> SideProcess::ask(std::string_view packet, int *fd) {
    const std::lock_guard<std::mutex> guard(mutex_);
    *fd = -1;
    if (!lost_.empty()) return lose(lost_);
    if (::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) return lose("is gone");
    Fd brought;
    auto answer = receive_packet(socket_, side_packet_max + 1, brought);
    const bool late = errno == EAGAIN;
    // A late answer would be taken for the next one's.
    if (!answer) return lose(late ? "does not answer" : "is gone");
    *fd = brought.release();
    return std::move(*answer);
}

Result<std::string> SideProcess::call(std::string_view packet, Fd *fd) {
    int number = -1;
    const Result<std::string> answer = ask(packet, &number);
    Fd brought(number);
    if (!answer) return answer.status();
    auto reply = read_side_answer(*answer);
    if (!reply) return distrust();
    if (fd != nullptr) *fd = std::move(brought);
    return reply->status ? Result<std::string>(std::move(reply->bytes)) : reply->status;
}

Status settle_side_process(int &socket, const char *name) {
    constexpr int only = 3;
    const bool moved = socket == only || ::dup3(socket, only, O_CLOEXEC) == only;
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    // If we were started without a standard error, the socket has that number.
    const bool placed = moved && nothing >= 0 && ::dup2(nothing, 0) == 0 && ::dup2(nothing, 1) == 1 &&
                        (socket != STDERR_FILENO || ::dup2(nothing, STDERR_FILENO) == STDERR_FILENO);
    keep_descriptors({only});  // locks among them: they are the daemon's, and free when it is gone
    ::setsid();
    // It ends with the daemon, by whatever that ends, and not before: a signal to the whole group is for the other.
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
    ::umask(077);
    ::prctl(PR_SET_NAME, name, 0, 0, 0);
    log_open(name, log_level());
    socket = only;
    return placed ? Status::ok() : fail(Code::io_error, std::string(name) + " has no descriptors");
}

void serve_side_process(const Status &settled, int socket, int patience_s,
                        const std::function<SideAnswer(std::string_view, int *)> &answer) {
    if (!settled) log_error(settled.text);
    // A longer packet than any request shows as one, and is cut off.
    std::string packet(side_packet_max + 1, '\0');
    for (bool served = bool(settled); served;) {
        const ssize_t n = ::recv(socket, packet.data(), packet.size(), 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        int fd = -1;
        ::alarm(static_cast<unsigned>(patience_s));
        const SideAnswer reply = answer({packet.data(), static_cast<std::size_t>(n)}, &fd);
        ::alarm(0);
        if (!reply.status) log_debug(reply.status.text);
        const Fd handed_on(fd);
        served = send_packet(socket, side_answer(reply), fd);
    }
    ::_exit(settled ? 0 : 1);  // nothing of the daemon's is undone here
}

std::string side_answer(const SideAnswer &answer) {
    const auto code = static_cast<std::uint32_t>(answer.status.code);
    std::string packet(code_size, '\0');
    std::memcpy(packet.data(), &code, code_size);
    packet += answer.status ? answer.bytes : answer.status.text;
    packet.resize(std::min(packet.size(), side_packet_max));
    return packet;
}

std::optional<SideAnswer> read_side_answer(std::string_view packet) {
    std::uint32_t code = 0;
    if (packet.size() < code_size || packet.size() > side_packet_max) return {};
    std::memcpy(&code, packet.data(), code_size);
    if (code > static_cast<std::uint32_t>(Code::last)) return {};
    SideAnswer answer;
    answer.status.code = static_cast<Code>(code);
    (answer.status ? answer.bytes : answer.status.text) = packet.substr(code_size);
    return answer;
}

}  // namespace dcs
