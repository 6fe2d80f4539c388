#include "daemon/ready.h"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files.h"

namespace dcs {

Status tell_ready(int fd) {
    if (fd < 0) return Status::ok();
    const Fd own(fd);
    const int error = write_all(fd, "ready\n") ? 0 : errno;
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
    const Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd) return fail_errno(Code::io_error, "cannot tell the service manager", errno);
    ssize_t n;
    do {
        n = ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
                     reinterpret_cast<sockaddr *>(&address), size);
    } while (n < 0 && errno == EINTR);
    return n >= 0 ? Status::ok() : fail_errno(Code::io_error, "cannot tell the service manager", errno);
}

}  // namespace dcs
