#include "net/unix_socket.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"

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

}  // namespace

Result<int> listen_unix_socket(const std::string &directory, const std::string &name, unsigned mode) {
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
    if (::fchmodat(dir.get(), fresh.c_str(), mode, 0) != 0 || ::listen(socket.get(), queued_connections) != 0 ||
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

}  // namespace dcs::net
