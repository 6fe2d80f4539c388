#include "net/socket_calls.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/option_table.h"
#include "base/planted.h"
#include "base/text.h"

namespace dcs::net {
namespace {

Fd folder(const std::string &directory) {
    return Fd(::open(directory.empty() ? "." : directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// False when it is too long for a socket address.
bool address_of(const std::string &path, sockaddr_un *address) {
    *address = {};
    address->sun_family = AF_UNIX;
    if (path.size() >= sizeof address->sun_path) return false;
    std::memcpy(address->sun_path, path.data(), path.size());
    return true;
}

// The short way to a name in an open directory. False when even the name alone is too long.
bool address_below(int directory, const std::string &name, sockaddr_un *address) {
    if (!name.empty() && address_of("/proc/self/fd/" + std::to_string(directory) + "/" + name, address)) return true;
    errno = ENAMETOOLONG;
    return false;
}

// The queue of new connections is short, so that each waits for few others.
constexpr int queued_connections = 128;

Fd stream_socket() { return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

constexpr int keepalive_idle_s = 30, keepalive_pause_s = 10, keepalive_tries = 3, unanswered_ms = 30'000;

void set(int fd, int level, int option, int value) { (void)::setsockopt(fd, level, option, &value, sizeof value); }

bool is_v6(const std::string &text) {
    const std::size_t zone = text.find('%');
    in6_addr ignored{};
    return ::inet_pton(AF_INET6, text.substr(0, zone).c_str(), &ignored) == 1 && text.find('\0') == text.npos &&
           (zone == std::string::npos || is_name(std::string_view(text).substr(zone + 1)));
}

// Takes the host from the front of `text`: ":PORT" or nothing is left of a good one.
bool take_host(std::string_view &text, std::string &host) {
    constexpr std::size_t longest_name = 253;  // of the DNS
    const bool brackets = text.starts_with('[');
    const std::size_t end = text.find(brackets ? ']' : ':');
    if (brackets && end == std::string_view::npos) return false;
    host = text.substr(brackets, end - brackets);
    text.remove_prefix(std::min(end, text.size() - brackets) + brackets);
    return brackets ? is_v6(host) : is_name(host, longest_name);
}

int listen_at(const addrinfo &at) {
    Fd fd(::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return -1;
    set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    const bool listens = ::bind(fd.get(), at.ai_addr, at.ai_addrlen) == 0 && ::listen(fd.get(), SOMAXCONN) == 0;
    return listens ? fd.release() : -1;
}

}  // namespace

Result<int> listen_unix_socket(const std::string &directory, const std::string &name, unsigned mode,
                               std::optional<std::uint32_t> group) {
    const std::string path = directory + "/" + name, fresh = name + ".new";
    Fd dir = folder(directory);
    if (!dir) return fail_errno(Code::not_found, "cannot open directory " + directory, errno);
    struct stat st = {};
    if (::fstatat(dir.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISSOCK(st.st_mode))
        return fail(Code::invalid, path + " exists and is not a socket: move it away");
    if (::fstatat(dir.get(), fresh.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode))
        ::unlinkat(dir.get(), fresh.c_str(), 0);  // of one who died between bind and rename
    sockaddr_un address;
    Fd socket = stream_socket();
    if (!socket || !address_below(dir.get(), fresh, &address) ||
        ::bind(socket.get(), reinterpret_cast<sockaddr *>(&address), sizeof address) != 0)
        return fail_errno(Code::io_error, "cannot make socket " + path, errno);
    constexpr auto same_owner = static_cast<uid_t>(-1);
    if ((group && ::fchownat(dir.get(), fresh.c_str(), same_owner, *group, AT_SYMLINK_NOFOLLOW) != 0) ||
        ::fchmodat(dir.get(), fresh.c_str(), mode, 0) != 0 || ::listen(socket.get(), queued_connections) != 0 ||
        ::renameat(dir.get(), fresh.c_str(), dir.get(), name.c_str()) != 0) {
        int error = errno;
        ::unlinkat(dir.get(), fresh.c_str(), 0);
        return fail_errno(Code::io_error, "cannot open socket " + path, error);
    }
    return socket.release();
}

int connect_to_path(int socket, const std::string &path, Duration wait) {
    const std::size_t slash = path.rfind('/');
    sockaddr_un address;
    Fd dir;
    if (!address_of(path, &address)) {
        dir = folder(slash == std::string::npos ? "." : path.substr(0, slash + 1));
        if (!dir || !address_below(dir.get(), path.substr(slash + 1), &address)) return errno;
    }
    const auto attempt = [&] {
        int result;
        do {
            result = ::connect(socket, reinterpret_cast<sockaddr *>(&address), sizeof address);
        } while (result != 0 && errno == EINTR);
        return result == 0 ? 0 : errno;
    };
    int error = attempt();
    // Where processes connect without end, no attempt from time to time finds a place, but each that waits gets one.
    const timeval most{wait.ns / 1'000'000'000, wait.ns % 1'000'000'000 / 1000};
    if (error != EAGAIN || ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most) != 0) return error;
    ::fcntl(socket, F_SETFL, 0);
    error = attempt();
    ::fcntl(socket, F_SETFL, O_NONBLOCK);
    return error;
}

int connect_unix_socket(const std::string &path) {
    Fd socket = stream_socket();
    if (!socket) return -1;
    const int error = connect_to_path(socket.get(), path, milliseconds(50));
    if (error == 0) return socket.release();
    errno = error;
    return -1;
}

Instant share_of_time(Instant end, Instant now, std::size_t left) {
    return now + Duration{(end - now).ns / static_cast<std::int64_t>(left)};
}

std::string few_descriptors(int listener, bool of_pool) {
    constexpr rlim_t kept_most = 64;
    rlimit now{};
    ::getrlimit(RLIMIT_NOFILE, &now);
    const rlim_t all = std::min(now.rlim_cur / 4, kept_most), kept = of_pool ? all / 2 : all;
    const Fd next(::fcntl(listener, F_DUPFD_CLOEXEC, 0));
    if (planted("net.takes_all_descriptors") || (next && static_cast<rlim_t>(next.get()) < now.rlim_cur - kept))
        return {};
    return "peers wait for a connection until others leave, because this process may open only " +
           std::to_string(now.rlim_cur) + " files and keeps the last " + std::to_string(kept) +
           " for its own: raise ulimit -Hn (LimitNOFILE=)";
}

int accept_socket(int listener) {
    int fd;
    do {
        fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    return fd;
}

Peer peer_of(int fd) {
    struct ucred who = {};
    socklen_t size = sizeof who;
    Peer peer{UINT32_MAX, UINT32_MAX, 0};  // no user, should the kernel not say
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && size == sizeof who)
        peer = Peer{who.uid, who.gid, who.pid};
    return peer;
}

Result<TcpAddress> parse_tcp_address(const std::string &text) {
    TcpAddress address;
    std::string_view left = text;
    if (take_host(left, address.host) && left.starts_with(':') && read_number(left.substr(1), address.port))
        return address;
    return fail(Code::invalid, "\"" + text + "\" is not an address: expected HOST:PORT or [IPV6]:PORT");
}

std::optional<TcpAddress> parse_address(std::string_view text) {
    TcpAddress address;
    if (!take_host(text, address.host)) return {};
    if (text.empty()) return address;
    if (text[0] != ':' || !read_number(text.substr(1), address.port) || address.port == 0) return {};
    return address;
}

Result<std::vector<std::string>> parse_tcp_addresses(const std::string &text) {
    std::vector<std::string> addresses = split(text, ',');
    for (const std::string &one : addresses)
        if (const auto address = parse_tcp_address(one); !address) return address.status();
    if (addresses.size() > addresses_most)
        return fail(Code::invalid, "more than " + std::to_string(addresses_most) + " addresses: " + text);
    return addresses;
}

Status check_scheduler_option(const std::string &text) {
    if (text.find('/') != std::string::npos) return Status::ok();
    const auto addresses = parse_tcp_addresses(text);
    if (addresses) return Status::ok();
    return fail(Code::invalid,
                "--scheduler: " + addresses.status().text + "; a name with a slash is a socket of this host");
}

std::string to_text(const TcpAddress &address) {
    const bool v6 = address.host.find(':') != std::string::npos;
    return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

Result<int> listen_tcp_socket(const TcpAddress &address) {
    addrinfo hints{.ai_flags = AI_PASSIVE, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    addrinfo *list = nullptr;
    const int wrong = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
    if (wrong != 0) return fail(Code::not_found, "cannot listen on " + to_text(address) + ": " + ::gai_strerror(wrong));
    int fd = -1;
    for (const addrinfo *at = list; at != nullptr && fd < 0; at = at->ai_next) fd = listen_at(*at);
    const int error = errno;
    ::freeaddrinfo(list);
    if (fd < 0) return fail_errno(Code::io_error, "cannot listen on " + to_text(address), error);
    return fd;
}

std::uint16_t port_of(int listener) {
    sockaddr_storage at{};
    socklen_t size = sizeof at;
    if (::getsockname(listener, reinterpret_cast<sockaddr *>(&at), &size) != 0) return 0;
    return ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 &>(at).sin6_port
                                          : reinterpret_cast<sockaddr_in &>(at).sin_port);
}

int begin_connect_tcp(const void *address, std::size_t size) {
    const auto *at = static_cast<const sockaddr *>(address);
    const int fd = ::socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (::connect(fd, at, static_cast<socklen_t>(size)) == 0 || errno == EINPROGRESS || errno == EINTR) return fd;
    const int error = errno;
    ::close(fd);
    errno = error;
    return -1;
}

int connect_error(int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

std::string ip_text(const void *address, std::size_t size) {
    char text[NI_MAXHOST] = "?";
    (void)::getnameinfo(static_cast<const sockaddr *>(address), static_cast<socklen_t>(size), text, sizeof text,
                        nullptr, 0, NI_NUMERICHOST);
    return text;
}

std::string address_of_peer(int fd) {
    sockaddr_storage at{};
    socklen_t size = sizeof at;
    return ::getpeername(fd, reinterpret_cast<sockaddr *>(&at), &size) == 0 ? ip_text(&at, size) : "?";
}

std::string network_of(const void *address, std::size_t size) {
    sockaddr_storage at{};
    std::memcpy(&at, address, std::min(size, sizeof at));
    char text[INET6_ADDRSTRLEN] = "?";
    if (at.ss_family == AF_INET6) {
        sockaddr_in6 six{};
        std::memcpy(&six, &at, sizeof six);
        if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
            (void)::inet_ntop(AF_INET, six.sin6_addr.s6_addr + 12, text, sizeof text);
            return text;
        }
        std::memset(six.sin6_addr.s6_addr + 8, 0, 8);
        (void)::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
        return std::string(text) + "/64";
    }
    sockaddr_in four{};
    std::memcpy(&four, &at, sizeof four);
    if (at.ss_family == AF_INET) (void)::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
    return text;
}

std::string network_of_peer(int fd) {
    sockaddr_storage at{};
    socklen_t size = sizeof at;
    return ::getpeername(fd, reinterpret_cast<sockaddr *>(&at), &size) == 0 ? network_of(&at, size) : "?";
}

void set_tcp_options(int fd) {
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, keepalive_idle_s);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, keepalive_pause_s);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, keepalive_tries);
    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, unanswered_ms);
}

}  // namespace dcs::net
