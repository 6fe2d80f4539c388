#include "peer.h"

#include <cerrno>
#include <cstring>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

namespace dcs::commands::page {
namespace {

constexpr std::uint8_t established = 1;  // TCP_ESTABLISHED of the kernel

struct Question {
    nlmsghdr head = {};
    inet_diag_req_v2 what = {};
};

// A socket that was closed has no owner any more, and is reported as root's: only open ones count.
Result<std::uint32_t> owner_in(const char *answer, std::size_t length) {
    nlmsghdr head = {};
    inet_diag_msg socket = {};
    if (length < sizeof head) return fail(Code::protocol, "the kernel's answer is too short");
    std::memcpy(&head, answer, sizeof head);
    if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || length < NLMSG_LENGTH(sizeof socket))
        return fail(Code::not_found, "the peer is not a socket of this host");
    std::memcpy(&socket, answer + NLMSG_HDRLEN, sizeof socket);
    if (socket.idiag_state != established || socket.idiag_inode == 0)
        return fail(Code::not_found, "the peer has closed its socket");
    return socket.idiag_uid;
}

Result<std::uint32_t> owner_of(const sockaddr_in &own, const sockaddr_in &peer) {
    const Fd kernel(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    if (!kernel) return fail_errno(Code::io_error, "a socket to the kernel", errno);
    Question question;
    question.head.nlmsg_len = sizeof question;
    question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    question.head.nlmsg_flags = NLM_F_REQUEST;
    question.what.sdiag_family = AF_INET;
    question.what.sdiag_protocol = IPPROTO_TCP;
    question.what.idiag_states = 1u << established;
    // As the peer's socket has it: its own end first.
    question.what.id.idiag_sport = peer.sin_port;
    question.what.id.idiag_dport = own.sin_port;
    question.what.id.idiag_src[0] = peer.sin_addr.s_addr;
    question.what.id.idiag_dst[0] = own.sin_addr.s_addr;
    question.what.id.idiag_cookie[0] = question.what.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    if (::send(kernel.get(), &question, sizeof question, 0) < 0)
        return fail_errno(Code::io_error, "cannot ask the kernel", errno);
    char answer[4096];
    const ssize_t n = ::recv(kernel.get(), answer, sizeof answer, 0);
    if (n < 0) return fail_errno(Code::io_error, "the kernel's answer", errno);
    return owner_in(answer, static_cast<std::size_t>(n));
}

}  // namespace

Result<std::uint32_t> uid_of_peer(int socket) {
    sockaddr_storage own = {}, peer = {};
    socklen_t length = sizeof own;
    if (::getsockname(socket, reinterpret_cast<sockaddr *>(&own), &length) != 0)
        return fail_errno(Code::io_error, "the socket's name", errno);
    if (own.ss_family == AF_UNIX) {
        ucred credentials = {};
        length = sizeof credentials;
        if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
            return fail_errno(Code::io_error, "the peer of a socket", errno);
        return static_cast<std::uint32_t>(credentials.uid);
    }
    length = sizeof peer;
    if (own.ss_family != AF_INET || ::getpeername(socket, reinterpret_cast<sockaddr *>(&peer), &length) != 0)
        return fail(Code::not_found, "the peer has closed its socket");
    sockaddr_in own_address = {}, peer_address = {};
    std::memcpy(&own_address, &own, sizeof own_address);
    std::memcpy(&peer_address, &peer, sizeof peer_address);
    return owner_of(own_address, peer_address);
}

}  // namespace dcs::commands::page
