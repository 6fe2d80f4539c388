#include "locks/kernel_lock.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace dcs::locks {
namespace {

constexpr int replaced_tries = 64;       // a file that is replaced more often is somebody's mischief
constexpr std::size_t note_bytes = 512;  // a note is one short line

// The descriptor of one attempt; closes it unless it became a lock.
struct Fd {
    int fd = -1;
    explicit Fd(int f) : fd(f) {}
    Fd(const Fd &) = delete;
    Fd &operator=(const Fd &) = delete;
    ~Fd() { if (fd >= 0) ::close(fd); }
    int release() { return std::exchange(fd, -1); }
};

struct flock first_byte() {
    struct flock range = {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = 0;
    range.l_len = 1;
    return range;
}

// Opening what exists comes first: O_CREAT on somebody else's file in a sticky directory is refused
// (fs.protected_regular) even to those who may open it. O_NONBLOCK: a planted FIFO must not hang us.
int open_lock_file(const std::string &path) {
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    for (int tries = 0; tries < replaced_tries; ++tries) {
        int fd = ::open(path.c_str(), flags);
        if (fd >= 0 || errno != ENOENT) return fd;
        fd = ::open(path.c_str(), flags | O_CREAT | O_EXCL, 0600);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    errno = EBUSY;
    return -1;
}

std::string read_note(int fd) {
    char bytes[note_bytes];
    ssize_t n = ::pread(fd, bytes, sizeof bytes, 0);
    return n > 0 ? std::string(bytes, static_cast<std::size_t>(n)) : std::string();
}

// The note on one line, fit for a terminal: anybody may have written it.
std::string printable(const std::string &note) {
    std::string text;
    for (char c : note.substr(0, note.find('\n')))
        text.push_back(c >= 0x20 && c < 0x7f ? c : '?');
    return text;
}

Status refused(const std::string &path, int fd) {
    std::string holder = printable(read_note(fd));
    return fail(Code::refused, path + " is locked by " +
                                   (holder.empty() ? "another process" : "process " + holder));
}

void write_note(int fd, const std::string &note) {
    // A hint only: on a full disk the lock is still a lock.
    std::string text = note.substr(0, note_bytes);
    if (::ftruncate(fd, 0) != 0) return;
    if (::pwrite(fd, text.data(), text.size(), 0) < 0) return;
}

enum class Got { yes, held, error };

Got lock_both(int fd) {
    struct flock range = first_byte();
    if (::fcntl(fd, F_OFD_SETLK, &range) != 0)
        return errno == EAGAIN || errno == EACCES ? Got::held : Got::error;
    // A holder that goes away loses its byte a moment before its flock. Whoever has the byte now
    // waits out that moment; somebody who holds flock(2) alone holds it longer.
    for (int tries = 0;; ++tries) {
        if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return Got::yes;
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) return Got::error;
        if (tries == 20) return Got::held;
        timespec pause = {0, 100'000};
        ::nanosleep(&pause, nullptr);
    }
}

// flock(2) cannot be asked without taking it; the kernel's list of locks can.
bool flock_listed(int fd) {
    struct stat st = {};
    if (::fstat(fd, &st) != 0) return false;
    char wanted[64];
    std::snprintf(wanted, sizeof wanted, " %02x:%02x:%lu ", major(st.st_dev), minor(st.st_dev),
                  static_cast<unsigned long>(st.st_ino));
    FILE *list = std::fopen("/proc/locks", "re");
    if (list == nullptr) return false;
    char line[256];
    bool found = false;
    while (!found && std::fgets(line, sizeof line, list) != nullptr)
        found = std::strstr(line, " FLOCK ") != nullptr && std::strstr(line, wanted) != nullptr &&
                std::strstr(line, "->") == nullptr;  // "->" marks one who waits
    std::fclose(list);
    return found;
}

int open_to_look(const std::string &path) {
    return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

}  // namespace

KernelLock &KernelLock::operator=(KernelLock &&other) noexcept {
    if (this != &other) {
        if (fd_ >= 0) ::close(fd_);
        fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
}

// Closing, never LOCK_UN: a child that inherited the description keeps the lock.
KernelLock::~KernelLock() {
    if (fd_ >= 0) ::close(fd_);
}

Result<KernelLock> KernelLock::take(const std::string &path, const std::string &note) {
    for (int tries = 0; tries < replaced_tries; ++tries) {
        Fd file(open_lock_file(path));
        if (file.fd < 0) {
            if (errno == ELOOP) return fail(Code::invalid, path + " is a symbolic link, not a lock");
            return fail_errno(errno == ENOENT ? Code::not_found : Code::io_error,
                              "cannot open lock file " + path, errno);
        }
        struct stat ours = {}, named = {};
        if (::fstat(file.fd, &ours) != 0)
            return fail_errno(Code::io_error, "cannot examine lock file " + path, errno);
        if (!S_ISREG(ours.st_mode)) return fail(Code::invalid, path + " is not a regular file");
        Got got = lock_both(file.fd);
        if (got == Got::error)
            return fail_errno(Code::io_error, "cannot lock " + path, errno);
        bool same = ::lstat(path.c_str(), &named) == 0 && named.st_dev == ours.st_dev &&
                    named.st_ino == ours.st_ino;
        if (!same) continue;  // replaced meanwhile: what counts is the file that has the name now
        if (got == Got::held) return refused(path, file.fd);
        write_note(file.fd, note);
        KernelLock lock;
        lock.fd_ = file.release();
        return lock;
    }
    return fail(Code::io_error, "lock file " + path + " is being replaced all the time");
}

std::string note_of(const std::string &path) {
    Fd file(open_to_look(path));
    return file.fd < 0 ? std::string() : read_note(file.fd);
}

bool is_held(const std::string &path) {
    Fd file(open_to_look(path));
    if (file.fd < 0) return false;
    struct flock range = first_byte();
    if (::fcntl(file.fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK) return true;
    return flock_listed(file.fd);
}

}  // namespace dcs::locks
