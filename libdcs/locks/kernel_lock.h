#pragma once
// Locks whose only truth is the kernel: an OFD byte lock plus flock(2) on one open file
// description. They go away with the last descriptor of that description, on any death.
// Files are never unlinked. What is written into them is a hint for people.
#include <string>
#include <utility>

#include "base/status.h"

namespace dcs::locks {

class KernelLock {
public:
    KernelLock() = default;
    KernelLock(KernelLock &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    KernelLock &operator=(KernelLock &&other) noexcept;
    ~KernelLock();
    bool held() const { return fd_ >= 0; }
    int fd() const { return fd_; }      // close-on-exec; dup it to hand the lock on
    int release_fd() { return std::exchange(fd_, -1); }

    // Does not wait. Code::refused when somebody else holds it, text names the holder as recorded.
    static Result<KernelLock> take(const std::string &path, const std::string &note);

private:
    int fd_ = -1;
};

// What the last taker wrote: "PID ROLE NAME\n" by DCS's own daemons. A hint; empty if unreadable.
std::string note_of(const std::string &path);

// Is the lock held by anybody now? Takes nothing, creates nothing.
bool is_held(const std::string &path);

}  // namespace dcs::locks
