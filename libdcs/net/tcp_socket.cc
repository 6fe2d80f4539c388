#include "net/tcp_socket.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

namespace dcs::net {
namespace {

constexpr int keepalive_idle_s = 30, keepalive_pause_s = 10, keepalive_tries = 3, unanswered_ms = 30'000;

void set(int fd, int level, int option, int value) { (void)::setsockopt(fd, level, option, &value, sizeof value); }

int listen_at(const addrinfo &at) {
    Fd fd(::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return -1;
    set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    const bool listens = ::bind(fd.get(), at.ai_addr, at.ai_addrlen) == 0 && ::listen(fd.get(), SOMAXCONN) == 0;
    return listens ? fd.release() : -1;
}

}  // namespace

Result<TcpAddress> parse_tcp_address(const std::string &text) {
    TcpAddress address;
    const std::size_t colon = text.rfind(':');
    const auto wrong = fail(Code::invalid, "\"" + text + "\" is not an address: expected HOST:PORT or [IPV6]:PORT");
    if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) return wrong;
    address.host = text.substr(0, colon);
    if (!read_number(std::string_view(text).substr(colon + 1), address.port)) return wrong;
    const bool brackets = address.host.front() == '[' && address.host.back() == ']';
    if (brackets) address.host = address.host.substr(1, address.host.size() - 2);
    const bool v6 = address.host.find(':') != std::string::npos;
    if (address.host.empty() || v6 != brackets || address.host.size() > 253 ||
        address.host.find_first_of(" \t[]/") != std::string::npos)
        return wrong;
    return address;
}

Result<std::vector<std::string>> parse_tcp_addresses(const std::string &text) {
    std::vector<std::string> addresses;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t comma = std::min(text.find(',', from), text.size());
        std::string one = text.substr(from, comma - from);
        if (const auto address = parse_tcp_address(one); !address) return address.status();
        addresses.push_back(std::move(one));
        from = comma + 1;
    }
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
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
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

std::string address_of_peer(int fd) {
    sockaddr_storage at{};
    socklen_t size = sizeof at;
    char text[NI_MAXHOST] = "?";
    if (::getpeername(fd, reinterpret_cast<sockaddr *>(&at), &size) == 0)
        (void)::getnameinfo(reinterpret_cast<sockaddr *>(&at), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    return text;
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
