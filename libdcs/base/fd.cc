#include "base/fd.h"

#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>

namespace dcs {

Fd above_standard(Fd fd) noexcept {
    if (!fd || fd.get() > STDERR_FILENO) return fd;
    return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

bool send_packet(int socket, std::string_view packet, int fd, int flags) noexcept {
    iovec part{const_cast<char *>(packet.data()), packet.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
    msghdr message{.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    ssize_t n;
    do n = ::sendmsg(socket, &message, MSG_NOSIGNAL | flags);
    while (n < 0 && errno == EINTR);
    return n >= 0;
}

std::optional<std::string> receive_packet(int socket, std::size_t max, Fd &fd) {
    std::string packet(max, '\0');
    iovec part{packet.data(), packet.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n;
    do n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n == 0) errno = 0;
    if (n <= 0) return {};
    const cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(head), sizeof number);
        fd = Fd(number);
    }
    packet.resize(static_cast<std::size_t>(n));
    return packet;
}

}  // namespace dcs
