#include "scheduler/shell/probe_socket.h"

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include "base/require.h"

namespace dcs::shell {
namespace {

constexpr std::uint8_t echo_reply_v4 = 0, echo_request_v4 = 8;      // of RFC 792
constexpr std::uint8_t echo_request_v6 = 128, echo_reply_v6 = 129;  // of RFC 4443

// The header and our cookie; both families have this form. The kernel puts in the checksum of v6, and for a
// datagram socket the id.
struct Echo {
    std::uint8_t type = 0, code = 0;
    std::uint16_t sum = 0, id = 0, sequence = 0;
    std::uint64_t cookie = 0;
};

std::uint16_t checksum(const Echo &echo) {
    std::uint16_t words[sizeof echo / 2];
    std::memcpy(words, &echo, sizeof echo);
    std::uint32_t sum = 0;
    for (const std::uint16_t word : words) sum += word;
    sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(~(sum + (sum >> 16)));
}

socklen_t size_of(const sockaddr_storage &address) {
    return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

// A host that refuses or resets is there.
Seen seen_by(int error) {
    return error == 0 || error == ECONNREFUSED || error == ECONNRESET ? Seen::alive : Seen::silent;
}

Seen look_at_reply(const ProbeSocket &probe) {
    unsigned char bytes[512];
    for (;;) {
        const ssize_t n = ::recv(probe.fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN ? Seen::nothing_yet : Seen::silent;
        const std::size_t start = probe.with_header && n > 0 ? (bytes[0] & 0xfu) * 4u : 0;
        Echo echo;
        if (start + sizeof echo > static_cast<std::size_t>(n)) continue;
        std::memcpy(&echo, bytes + start, sizeof echo);
        if (echo.type == (probe.v6 ? echo_reply_v6 : echo_reply_v4) && echo.cookie == probe.cookie) return Seen::alive;
    }
}

}  // namespace

ProbeSocket connect_probe(const sockaddr_storage &to, std::uint16_t port) {
    sockaddr_storage address = to;
    if (to.ss_family == AF_INET6) reinterpret_cast<sockaddr_in6 &>(address).sin6_port = htons(port);
    else reinterpret_cast<sockaddr_in &>(address).sin_port = htons(port);
    ProbeSocket probe{.fd = ::socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), .events = POLLOUT};
    if (probe.fd < 0) {
        probe.seen = errno == EAFNOSUPPORT ? Seen::silent : Seen::alive;
        return probe;
    }
    const auto *where = reinterpret_cast<const sockaddr *>(&address);
    const int error = ::connect(probe.fd, where, size_of(to)) == 0 ? 0 : errno;
    if (error == EINPROGRESS) return probe;
    probe.seen = seen_by(error);
    ::close(probe.fd);
    probe.fd = -1;
    return probe;
}

std::optional<ProbeSocket> echo_probe(const sockaddr_storage &to, std::uint64_t cookie,
                                      const std::function<int(bool v6)> &raw_socket) {
    ProbeSocket probe{.events = POLLIN, .echo = true, .v6 = to.ss_family == AF_INET6, .cookie = cookie};
    const int protocol = probe.v6 ? int{IPPROTO_ICMPV6} : int{IPPROTO_ICMP};
    probe.fd = ::socket(to.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    if (probe.fd < 0) {
        probe.with_header = !probe.v6;
        probe.fd = raw_socket(probe.v6);
    }
    if (probe.fd < 0) return {};
    Echo echo;
    echo.type = probe.v6 ? echo_request_v6 : echo_request_v4;
    echo.id = static_cast<std::uint16_t>(::getpid());
    echo.cookie = cookie;
    if (!probe.v6) echo.sum = checksum(echo);
    const auto *address = reinterpret_cast<const sockaddr *>(&to);
    if (::connect(probe.fd, address, size_of(to)) == 0 && ::send(probe.fd, &echo, sizeof echo, MSG_NOSIGNAL) > 0)
        return probe;
    probe.seen = Seen::silent;  // no way there
    ::close(probe.fd);
    probe.fd = -1;
    return probe;
}

Seen look_at(const ProbeSocket &probe) {
    DCS_REQUIRE(probe.fd >= 0, "only an open socket is examined");
    if (probe.echo) return look_at_reply(probe);
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(probe.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return Seen::silent;
    return seen_by(error);
}

}  // namespace dcs::shell
