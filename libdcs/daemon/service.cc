#include "daemon/service.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files.h"
#include "daemon/log.h"

namespace dcs {

Result<Signals> Signals::open() {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
    if (int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0)
        return fail_errno(Code::internal, "cannot block signals", error);
    for (const int of_write : {SIGPIPE, SIGXFSZ}) std::signal(of_write, SIG_IGN);
    Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) return fail_errno(Code::internal, "cannot receive signals", errno);
    return Signals(std::move(fd));
}

int Signals::next() {
    signalfd_siginfo info = {};
    ssize_t n;
    do { n = ::read(fd(), &info, sizeof info); } while (n < 0 && errno == EINTR);
    return n == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

Result<ServiceManager> ServiceManager::from_environment() {
    const char *variable = std::getenv("NOTIFY_SOCKET");
    const std::string name = variable != nullptr ? variable : "";
    ::unsetenv("NOTIFY_SOCKET");
    if (name.empty()) return ServiceManager();
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if ((name[0] != '/' && name[0] != '@') || name.size() >= sizeof address.sun_path)
        return fail(Code::invalid, "NOTIFY_SOCKET is neither a path nor an abstract name");
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    // The length counts: an abstract name ends where the address ends.
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (name[0] == '/' ? 1 : 0));
    Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr *>(&address), size) != 0)
        return fail_errno(Code::io_error, "cannot reach the service manager", errno);
    return ServiceManager(std::move(fd));
}

ServiceManager ServiceManager::find() {
    auto manager = from_environment();
    if (manager) return std::move(*manager);
    log_warn(manager.status().text);
    return {};
}

void ServiceManager::tell(const std::string &state) const {
    if (!socket_) return;
    ssize_t n;
    do { n = ::send(socket_.get(), state.data(), state.size(), MSG_NOSIGNAL); } while (n < 0 && errno == EINTR);
    if (n < 0) log_warn(fail_errno(Code::io_error, "cannot tell the service manager", errno).text);
}

Status check_ready_fd(int fd) {
    if (fd < 0 || ::fcntl(fd, F_GETFL) >= 0) return Status::ok();
    return fail(Code::invalid, "--ready-fd " + std::to_string(fd) +
                                   ": this descriptor is not open; pass an open one on, or omit the option");
}

Status tell_ready(int fd) {
    if (fd < 0) return Status::ok();
    const Fd own(fd);
    const int error = write_all(fd, "ready\n") ? 0 : errno;
    if (error == 0 || error == EPIPE) return Status::ok();
    return fail_errno(Code::io_error, "cannot write to the descriptor of --ready-fd", error);
}

}  // namespace dcs
