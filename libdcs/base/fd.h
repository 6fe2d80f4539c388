#pragma once
// A file descriptor that is closed when its owner goes, and its way to another process.
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace dcs {

class Fd {
public:
    Fd() = default;
    explicit Fd(int fd) noexcept : fd_(fd) {}
    Fd(Fd &&other) noexcept : fd_(other.release()) {}
    Fd &operator=(Fd &&other) noexcept {
        Fd(std::move(other)).swap(*this);
        return *this;
    }
    // Leaves errno alone: it is often that of the call that failed before.
    ~Fd() {
        const int error = errno;
        if (fd_ >= 0) ::close(fd_);
        errno = error;
    }
    void swap(Fd &other) noexcept { std::swap(fd_, other.fd_); }
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    int release() { return std::exchange(fd_, -1); }
    // How a file that was written to is closed: Linux reports late errors here. An interrupted close has closed.
    bool close_checked() { return ::close(release()) == 0 || errno == EINTR; }

private:
    int fd_ = -1;
};

// The same file under a number that is no standard stream's: a program may have closed one and still write to it. For
// descriptors that stay open while the program runs. None, with errno, if there is no number, as for none.
Fd above_standard(Fd fd) noexcept;

// A packet of a Unix socket (SOCK_SEQPACKET), which takes `fd` along if it is one. False with errno.
bool send_packet(int socket, std::string_view packet, int fd = -1, int flags = 0) noexcept;
// The next one, of which `max` bytes are taken, and its descriptor if it has one. Nothing, with errno, if there is
// none; 0: the other side is gone.
std::optional<std::string> receive_packet(int socket, std::size_t max, Fd &fd);

}  // namespace dcs
