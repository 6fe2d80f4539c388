#include "daemon/ready.h"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace dcs::daemon {
namespace {

void notify_manager(const std::string &name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (name.size() < 2 || name.size() >= sizeof address.sun_path) return;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';  // an abstract name
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    static const char text[] = "READY=1";
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    (void)::sendto(fd, text, sizeof text - 1, MSG_NOSIGNAL, reinterpret_cast<sockaddr *>(&address), length);
    ::close(fd);
}

}  // namespace

void say_ready(int ready_fd) {
    if (ready_fd >= 0) {
        static const char text[] = "ready\n";
        while (::write(ready_fd, text, sizeof text - 1) < 0 && errno == EINTR) {
        }
        ::close(ready_fd);
    }
    if (const char *name = std::getenv("NOTIFY_SOCKET")) notify_manager(name);
}

}  // namespace dcs::daemon
