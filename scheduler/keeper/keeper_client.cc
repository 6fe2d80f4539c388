#include "scheduler/keeper/keeper_client.h"

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scheduler/keeper/settings_file.h"

namespace dcs::keeper {
namespace {

constexpr timeval patience{patience_s + 5, 0};  // the keeper ends by itself if it can

// Of the right size and with at most one descriptor; nothing when the connection is over or out of time.
std::optional<std::string> receive(int socket, int *fd) {
    std::string packet(reply_max + 1, '\0');
    iovec part{packet.data(), packet.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof *fd)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t n;
    do {
        n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) return {};
    const cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
        std::memcpy(fd, CMSG_DATA(head), sizeof *fd);
    packet.resize(static_cast<std::size_t>(n));
    return packet;
}

}  // namespace

Result<std::unique_ptr<KeeperClient>> KeeperClient::start(const Place &place) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return fail_errno(Code::io_error, "a socket to the keeper", errno);
    const pid_t pid = ::fork();
    if (pid == 0) run_keeper(pair[1], place);
    const int error = errno;
    ::close(pair[1]);
    ::setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (pid > 0) return std::unique_ptr<KeeperClient>(new KeeperClient(pair[0], pid));
    ::close(pair[0]);
    return fail_errno(Code::io_error, "the keeper cannot be started", error);
}

KeeperClient::~KeeperClient() {
    ::close(socket_);
    if (pid_ > 0) ::waitpid(pid_, nullptr, WNOHANG);  // it ends by itself, and is not waited for
}

bool KeeperClient::gone() {
    const std::lock_guard<std::mutex> guard(mutex_);
    pollfd polled{socket_, POLLIN, 0};
    return !lost_.empty() || (::poll(&polled, 1, 0) > 0 && (polled.revents & (POLLHUP | POLLERR)) != 0);
}

std::string KeeperClient::how_it_ended() {
    const std::lock_guard<std::mutex> guard(mutex_);
    int status = 0;
    // Its socket is closed a moment before it can be waited for.
    if (pid_ > 0 && lost_.find("does not answer") != std::string::npos) return lost_;
    while (pid_ > 0 && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    pid_ = 0;
    if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
    return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

Status KeeperClient::lose(const std::string &why) {
    if (lost_.empty()) lost_ = why;
    is_lost_ = true;
    return fail(Code::unreachable, "the scheduler's keeper " + lost_ + ": the scheduler has to be started again");
}

Reply KeeperClient::call(const Request &request, int *fd) {
    const std::lock_guard<std::mutex> guard(mutex_);
    *fd = -1;
    if (!lost_.empty()) return {lose(lost_), ""};
    const std::string packet = to_packet(request);
    if (request.name.size() >= name_max) return {fail(Code::invalid, "the name is too long"), ""};
    if (::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) return {lose("is gone"), ""};
    errno = 0;
    const auto answer = receive(socket_, fd);
    const bool late = errno == EAGAIN;
    auto reply = answer ? read_reply(*answer) : std::nullopt;
    // A late answer would be taken for the next one's.
    if (!reply) return {lose(answer ? "talks nonsense" : late ? "does not answer" : "is gone"), ""};
    return std::move(*reply);
}

Result<std::string> KeeperClient::bytes(const Request &request) {
    int fd = -1;
    Reply reply = call(request, &fd);
    if (fd >= 0) ::close(fd);
    if (!reply.status) return reply.status;
    return std::move(reply.bytes);
}

Result<std::string> KeeperClient::authority() {
    Request request;
    request.ask = Ask::authority;
    return bytes(request);
}

Result<std::string> KeeperClient::own_certificate(std::string_view public_key) {
    return certificate(pki::Role::scheduler, "", public_key);
}

Result<std::string> KeeperClient::certificate(pki::Role role, const std::string &name, std::string_view public_key) {
    const std::optional<Point> point = point_of(public_key);
    if (!point) return fail(Code::invalid, "it is no public key on the curve P-256");
    Request request;
    request.ask = role == pki::Role::scheduler ? Ask::own_certificate : Ask::certificate;
    request.role = role == pki::Role::scheduler ? pki::Role::none : role;
    request.name = name;
    request.point = *point;
    return bytes(request);
}

Result<std::string> KeeperClient::settings(Settings which, const std::string &file, const std::string &what) {
    Request request;
    request.ask = Ask::settings;
    request.which = which;
    int fd = -1;
    const Reply reply = call(request, &fd);
    if (!reply.status) return reply.status;
    if (fd < 0) return fail(Code::internal, "the keeper has not handed over " + file);
    return read_settings(fd, file, what);
}

Status KeeperClient::remove_host(const std::string &host) {
    Request request;
    request.ask = Ask::remove_host;
    request.name = host;
    return bytes(request).status();
}

std::string KeeperClient::user_name(std::uint32_t uid) {
    Request request;
    request.ask = Ask::user_name;
    request.number = uid;
    const Result<std::string> name = bytes(request);
    return name ? *name : std::string();
}

Status KeeperClient::check_login(const std::string &user) {
    Request request;
    request.ask = Ask::check_login;
    request.name = user;
    return bytes(request).status();
}

int KeeperClient::echo_socket(bool v6) {
    Request request;
    request.ask = Ask::echo_socket;
    request.number = v6 ? 6 : 4;
    int fd = -1;
    if (!call(request, &fd).status && fd >= 0) {
        ::close(fd);
        fd = -1;
    }
    return fd;
}

}  // namespace dcs::keeper
