#include "daemon/ready.h"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace dcs {

Status tell_ready(int fd) {
    if (fd < 0) return Status::ok();
    const char text[] = "ready\n";
    std::size_t done = 0;
    int error = 0;
    while (done < sizeof text - 1 && error == 0) {
        ssize_t n = ::write(fd, text + done, sizeof text - 1 - done);
        if (n > 0) done += static_cast<std::size_t>(n);
        else if (n < 0 && errno != EINTR) error = errno;
    }
    ::close(fd);
    if (error == 0 || error == EPIPE) return Status::ok();
    return fail_errno(Code::io_error, "cannot write to the descriptor of --ready-fd", error);
}

Status notify_service_manager(const std::string &state) {
    const char *name = std::getenv("NOTIFY_SOCKET");
    if (name == nullptr || *name == '\0') return Status::ok();
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::size_t length = std::strlen(name);
    if ((*name != '/' && *name != '@') || length >= sizeof address.sun_path)
        return fail(Code::invalid, "NOTIFY_SOCKET is neither a path nor an abstract name");
    std::memcpy(address.sun_path, name, length);
    if (*name == '@') address.sun_path[0] = '\0';
    // The length counts: an abstract name ends where the address ends.
    auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length + (*name == '/' ? 1 : 0));
    int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return fail_errno(Code::io_error, "cannot tell the service manager", errno);
    ssize_t n;
    do {
        n = ::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL,
                     reinterpret_cast<sockaddr *>(&address), size);
    } while (n < 0 && errno == EINTR);
    int error = errno;
    ::close(fd);
    return n >= 0 ? Status::ok() : fail_errno(Code::io_error, "cannot tell the service manager", error);
}

}  // namespace dcs
