#include "client/transport.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <mutex>
#include <vector>

#include <grp.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "net/socket_calls.h"

namespace dcs::client {
namespace {

// All connections of the process. A forked child closes its copies: else the scheduler would not
// notice the parent's end, and two processes could speak on one connection.
struct Register {
    std::mutex mutex;
    std::vector<int> open;
};
Register &sockets = *new Register;  // made at load (pool.cc), and outlives every thread's connection
void hold_sockets() { sockets.mutex.lock(); }
void let_sockets_go() { sockets.mutex.unlock(); }
void forget_sockets() {
    for (const int fd : sockets.open) ::close(fd);
    sockets.open.clear();
    sockets.mutex.unlock();
}
[[maybe_unused]] const int at_forks = ::pthread_atfork(hold_sockets, let_sockets_go, forget_sockets);

// The mutex is held around the system call as well, so that a fork sees either both or neither.
int open_socket(int family) {
    const std::lock_guard lock(sockets.mutex);
    sockets.open.reserve(sockets.open.size() + 1);
    Fd fd = above_standard(Fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    if (fd) sockets.open.push_back(fd.get());
    return fd.release();
}
void close_socket(int fd) {
    const std::lock_guard lock(sockets.mutex);
    auto &open = sockets.open;
    open.erase(std::remove(open.begin(), open.end(), fd), open.end());
    ::close(fd);
}

bool is_missing(const std::string &directory) {
    return ::access(directory.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

constexpr std::size_t tls_piece = 16 * 1024;
constexpr Duration wait_for_place = seconds(1);

// Of a socket that does not let us in: whose it is.
std::string who_may(const std::string &path) {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) return "";  // or of what lies on the way to it
    if ((st.st_mode & 070) == 0) return " (only its owner may use it)";
    char buffer[4096];
    group entry{}, *found = nullptr;
    const bool named = ::getgrgid_r(st.st_gid, &entry, buffer, sizeof buffer, &found) == 0 && found;
    return " (only members of the group " + (named ? std::string(entry.gr_name) : std::to_string(st.st_gid)) +
           " may use it)";
}

Status broke(const std::string &what, int error) { return fail_errno(Code::broken, what, error); }

}  // namespace

bool Transport::mine() const { return fd_ >= 0 && pid_ == ::getpid(); }

void Transport::close() {
    if (mine()) close_socket(fd_);
    fd_ = -1;
    tls_.reset();
    plain_.clear();
}

Transport::Refusal Transport::connect(const std::string &path) {
    close();
    const int fd = open_socket(AF_UNIX);
    if (fd < 0) return {errno, false, fail_errno(Code::unreachable, "socket", errno).text};
    const int error = net::connect_to_path(fd, path, wait_for_place);
    if (error == 0) {
        fd_ = fd;
        pid_ = ::getpid();
        return {};
    }
    close_socket(fd);
    const bool directory_missing = error != EACCES && is_missing(path.substr(0, path.rfind('/') + 1));
    const bool hopeless = directory_missing || error == EACCES || error == EPERM || error == ENAMETOOLONG;
    std::string why = fail_errno(Code::unreachable, path, error).text;
    if (error == EACCES) why += who_may(path);
    if (directory_missing) why += " (there is no pool; `dcs up` makes one)";
    return {error, hopeless, why};
}

bool Transport::usable() {
    if (!mine() || !plain_.empty()) return false;
    pollfd p{fd_, POLLIN | POLLRDHUP, 0};
    return ::poll(&p, 1, 0) == 0;
}

bool Transport::silent_until(Instant deadline) {
    return mine() && plain_.empty() && !wait(POLLIN, deadline) && boot_clock() >= deadline;
}

Status Transport::wait(short events, Instant deadline) {
    for (;;) {
        int timeout = -1;
        if (deadline != Instant::never()) {
            const std::int64_t left = (deadline - boot_clock()).ns;
            if (left <= 0) return fail(Code::broken, "the scheduler does not answer in time");
            timeout = static_cast<int>(std::min<std::int64_t>((left + 999'999) / 1'000'000, INT_MAX));
        }
        pollfd p{fd_, events, 0};
        const int n = ::poll(&p, 1, timeout);
        if (n > 0) return Status::ok();
        if (n < 0 && errno != EINTR) return broke("poll", errno);
    }
}

Status Transport::send(std::string_view bytes, Instant deadline) {
    if (!mine()) return fail(Code::broken, "not connected");
    if (!tls_) return send_raw(bytes, deadline);
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), tls_piece))) {
        tls_->send(std::string(bytes.substr(0, tls_piece)));
        if (Status s = flush_tls(deadline); !s) return s;
    }
    return Status::ok();
}

Status Transport::flush_tls(Instant deadline) { return send_raw(tls_->take_output(), deadline); }

Status Transport::send_raw(std::string_view bytes, Instant deadline) {
    while (!bytes.empty()) {
        if (const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); n > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(n));
        } else if (n < 0 && errno == EAGAIN) {
            if (Status s = wait(POLLOUT, deadline); !s) return s;
        } else if (n < 0 && errno != EINTR) {
            return broke("sending", errno);
        }
    }
    return Status::ok();
}

// What has come, deciphered.
Status Transport::read_tls(Instant deadline) {
    char bytes[tls_piece];
    for (;;) {
        const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
        if (got > 0) {
            const Status s = tls_->feed(std::string_view(bytes, static_cast<std::size_t>(got)), &plain_);
            const Status told = flush_tls(deadline);
            clocks_ = !s && tls_->about_time();
            if (!s) return s.code == Code::refused ? fail(Code::no_auth, s.text) : s;
            if (told && plain_.empty() && tls_->ended())
                return fail(Code::broken, "the scheduler closed the connection");
            return told;
        }
        if (got == 0) return fail(Code::broken, "the scheduler closed the connection");
        if (errno == EAGAIN) {
            if (Status s = wait(POLLIN, deadline); !s) return s;
        } else if (errno != EINTR) {
            return broke("receiving", errno);
        }
    }
}

Status Transport::shake_hands(Instant deadline) {
    if (Status s = tls_->feed("", &plain_); !s) return s;
    if (Status s = flush_tls(deadline); !s) return s;
    while (!tls_->open())
        if (Status s = read_tls(deadline); !s) return s;
    return Status::ok();
}

// 0: connected; else an errno.
int Transport::try_address(const void *address, std::size_t size, Instant deadline) {
    DCS_REQUIRE(fd_ < 0 && !tls_, "a transport has one connection at a time");
    const auto *at = static_cast<const sockaddr *>(address);
    fd_ = open_socket(at->sa_family);
    if (fd_ < 0) return errno;
    pid_ = ::getpid();
    if (::connect(fd_, at, static_cast<socklen_t>(size)) != 0) {
        if (errno != EINPROGRESS && errno != EINTR) return errno;
        if (!wait(POLLOUT, deadline)) return ETIMEDOUT;
        if (const int error = net::connect_error(fd_); error != 0) return error;
    }
    net::set_tcp_options(fd_);
    return 0;
}

Transport::Refusal Transport::connect_tls(const std::string &address, const net::TlsContextPtr &context,
                                          Instant deadline) {
    close();
    const auto at = net::parse_tcp_address(address);
    if (!at) return {EINVAL, true, at.status().text};
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    const int unknown = ::getaddrinfo(at->host.c_str(), std::to_string(at->port).c_str(), &hints, &found);
    if (unknown != 0) return {EHOSTUNREACH, false, "cannot find the host " + at->host + ": " + ::gai_strerror(unknown)};
    int error = EHOSTUNREACH;
    std::size_t left = 0;
    for (const addrinfo *a = found; a != nullptr; a = a->ai_next) ++left;
    for (const addrinfo *a = found; a != nullptr && error != 0; a = a->ai_next) {
        close();
        error = try_address(a->ai_addr, a->ai_addrlen, net::share_of_time(deadline, boot_clock(), left--));
    }
    ::freeaddrinfo(found);
    if (error != 0) {
        close();
        return {error, false, fail_errno(Code::unreachable, address, error).text};
    }
    tls_ = std::make_unique<net::TlsSession>(context, net::TlsSession::Side::caller);
    clocks_ = false;
    const Status shaken = shake_hands(deadline);
    if (shaken) return {};
    close();
    const bool hopeless = shaken.code == Code::no_auth || shaken.code == Code::refused;
    return {EPROTO, hopeless, address + ": " + shaken.text, clocks_};
}

Status Transport::read_exactly(char *to, std::size_t n, Instant deadline) {
    if (tls_) {
        while (plain_.size() < n)
            if (Status s = read_tls(deadline); !s) return s;
        plain_.copy(to, n);
        plain_.erase(0, n);
        return Status::ok();
    }
    while (n > 0) {
        if (const ssize_t got = ::recv(fd_, to, n, 0); got > 0) {
            to += got;
            n -= static_cast<std::size_t>(got);
        } else if (got == 0) {
            return fail(Code::broken, "the scheduler closed the connection");
        } else if (errno == EAGAIN) {
            if (Status s = wait(POLLIN, deadline); !s) return s;
        } else if (errno != EINTR) {
            return broke("receiving", errno);
        }
    }
    return Status::ok();
}

Result<Frame> Transport::receive(std::size_t max_payload, Instant deadline) {
    if (!mine()) return fail(Code::broken, "not connected");
    char head[wire::header_bytes];
    if (Status s = read_exactly(head, sizeof head, deadline); !s) return s;
    auto header = wire::decode_header(std::string_view(head, sizeof head), max_payload);
    if (!header) return fail(Code::protocol, header.status().text);
    std::string payload(header->length, '\0');
    if (Status s = read_exactly(payload.data(), payload.size(), deadline); !s) return s;
    auto message = wire::decode_payload(*header, payload);
    if (!message) return fail(Code::protocol, message.status().text);
    return Frame{*header, std::move(*message)};
}

}  // namespace dcs::client
