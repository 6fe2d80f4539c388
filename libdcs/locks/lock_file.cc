#include "base/clock.h"
#include "locks/lock_file.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/planted.h"
#include "locks/lock_header.h"
#include "locks/wait_timer.h"

namespace dcs::locks {
namespace {

constexpr int replaced_tries = 64;  // a file that comes and goes more often is somebody's mischief

struct flock range_of(std::int64_t byte, std::int64_t length, short type) {
    struct flock range = {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = byte;
    range.l_len = length;
    return range;
}

// Opens what is there. `writable` says whether for writing too. O_NONBLOCK: a planted FIFO must not hang us.
int open_existing(const std::string &path, bool &writable) {
    const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    writable = true;
    int fd = ::open(path.c_str(), O_RDWR | flags);
    if (fd < 0 && (errno == EACCES || errno == EISDIR || errno == EROFS)) {
        writable = false;
        fd = ::open(path.c_str(), O_RDONLY | flags);
    }
    return fd;
}

Status cannot_open(const std::string &path) {
    switch (errno) {
    case ELOOP: return fail(Code::invalid, path + " is a symbolic link, not a lock file");
    case ENOENT: return fail_errno(Code::not_found, "cannot open lock file " + path, errno);
    case EACCES:
    case EPERM: return fail_errno(Code::refused, "cannot open lock file " + path, errno);
    case ENOSPC:
    case EDQUOT: return fail_errno(Code::no_space, "cannot make lock file " + path, errno);
    default: return fail_errno(Code::io_error, "cannot open lock file " + path, errno);
    }
}

// A whole new lock file under `path`, or -1 with errno; EEXIST: somebody was faster.
int make_file(const Place &place, FileKind kind, unsigned mode) {
    const std::string &path = place.path;
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    const int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        // A file system without O_TMPFILE: an empty file that its first holder completes.
        const int plain = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (plain >= 0 && (::fchmod(plain, mode) != 0 || write_header(plain, kind, place.atom) != 0)) {
            const int error = errno;
            ::close(plain);
            errno = error;
            return -1;
        }
        return plain;
    }
    if (fd < 0) return -1;
    const std::string self = "/proc/self/fd/" + std::to_string(fd);
    if (::fchmod(fd, mode) == 0 && write_header(fd, kind, place.atom) == 0 &&
        ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0)
        return fd;
    const int error = errno;
    ::close(fd);
    errno = error;
    return -1;
}

// flock(2) for who has the byte already. A holder that goes away loses its byte a moment before its flock: whoever
// has the byte and does not wait sits out that moment; somebody who holds flock(2) alone holds it longer.
Result<bool> take_flock(int fd, bool shared, const Deadline &until) {
    const int how = shared ? LOCK_SH : LOCK_EX;
    constexpr int quick_tries = 50, tries_max = 70;
    for (int tries = 0;; ++tries) {
        if (::flock(fd, how | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK && errno != EINTR) return fail_errno(Code::io_error, "flock", errno);
        if (until.boot != 0) break;
        if (tries == tries_max) return false;
        timespec pause = {0, 100'000};
        if (tries < quick_tries) ::sched_yield();
        else ::nanosleep(&pause, nullptr);
    }
    const WaitTimer timer(until.boot);
    if (!timer.works()) return fail(Code::io_error, "the kernel gives no timer to wait with");
    while (::flock(fd, how) != 0) {
        if (errno != EINTR) return fail_errno(Code::io_error, "flock", errno);
        if (timer.passed()) return false;
    }
    return true;
}

}  // namespace

LockFile &LockFile::operator=(LockFile &&other) noexcept {
    if (this != &other) {
        if (fd_ >= 0 && !borrowed_) ::close(fd_);
        fd_ = std::exchange(other.fd_, -1);
        borrowed_ = other.borrowed_;
        writable_ = other.writable_;
        waited_ = other.waited_;
        kind_ = other.kind_;
        kind_wanted_ = other.kind_wanted_;
        path_ = std::move(other.path_);
        atom_ = std::move(other.atom_);
    }
    return *this;
}

LockFile::~LockFile() {
    if (fd_ >= 0 && !borrowed_) ::close(fd_);
}

Result<LockFile> LockFile::open(const Place &place, FileKind kind, unsigned mode) {
    for (int tries = 0; tries < replaced_tries; ++tries) {
        LockFile file;
        file.fd_ = open_existing(place.path, file.writable_);
        if (file.fd_ < 0 && errno != ENOENT) return cannot_open(place.path);
        file.path_ = place.path;
        file.kind_wanted_ = kind;
        if (file.fd_ < 0) {
            file.fd_ = make_file(place, kind, mode);
            if (file.fd_ < 0 && errno == EEXIST) continue;
            if (file.fd_ < 0) return cannot_open(place.path);
            file.kind_ = kind;
            return file;
        }
        if (Status s = judge(file.fd_, place, kind, &file.kind_); !s) return s;
        if (!file.writable_ && file.kind_ != FileKind::foreign)
            return fail(Code::refused, "no permission to write lock file " + place.path);
        if (file.kind_ == FileKind::broken) file.atom_ = place.atom;  // for make_whole()
        return file;
    }
    return fail(Code::io_error, "lock file " + place.path + " is being replaced all the time");
}

Result<LockFile> LockFile::look(const Place &place) {
    LockFile file;
    file.fd_ = open_existing(place.path, file.writable_);
    if (file.fd_ < 0) return cannot_open(place.path);
    file.path_ = place.path;
    file.atom_ = place.atom;
    file.kind_ = recognise(file.fd_, place.adopt, &file.atom_);
    file.kind_wanted_ = file.kind_;
    return file;
}

LockFile LockFile::around(int fd) {
    LockFile file;
    file.fd_ = fd;
    file.borrowed_ = true;
    file.writable_ = (::fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    file.path_ = "descriptor " + std::to_string(fd);
    return file;
}

Status LockFile::make_whole() {
    if (kind_ != FileKind::broken) return Status::ok();
    if (write_header(fd_, kind_wanted_, atom_) != 0)
        return fail_errno(errno == ENOSPC || errno == EDQUOT ? Code::no_space : Code::io_error,
                          "cannot write lock file " + path_, errno);
    kind_ = kind_wanted_;
    return Status::ok();
}

Result<bool> LockFile::lock(std::int64_t byte, std::int64_t length, bool shared, const Deadline &until) const {
    struct flock range = range_of(byte, length, shared ? F_RDLCK : F_WRLCK);
    if (::fcntl(fd_, F_OFD_SETLK, &range) == 0) return true;
    const auto failed = [this] { return fail_errno(Code::io_error, "cannot lock " + path_, errno); };
    if (errno != EAGAIN && errno != EACCES) return failed();
    if (until.boot == 0 || (until.boot != INT64_MAX && until.boot <= boot_clock().ns)) return false;
    waited_ = true;
    const WaitTimer timer(until.boot);
    if (!timer.works()) return fail(Code::io_error, "the kernel gives no timer to wait with");
    while (::fcntl(fd_, F_OFD_SETLKW, &range) != 0) {
        if (errno != EINTR) return failed();
        if (timer.passed()) return false;
    }
    return true;
}

void LockFile::unlock(std::int64_t byte, std::int64_t length) const {
    struct flock range = range_of(byte, length, F_UNLCK);
    ::fcntl(fd_, F_OFD_SETLK, &range);
}

std::int64_t LockFile::first_locked(std::int64_t byte, std::int64_t length, std::int64_t *end) const {
    struct flock range = range_of(byte, length, F_WRLCK);
    if (::fcntl(fd_, F_OFD_GETLK, &range) != 0 || range.l_type == F_UNLCK) return -1;
    if (end != nullptr) *end = range.l_len == 0 ? INT64_MAX : range.l_start + range.l_len;
    return range.l_start;
}

Result<bool> LockFile::hold(bool shared, const Deadline &until) {
    if (planted("locks.hold_anyway")) return true;
    if (writable_) {
        Result<bool> got = lock(holder_byte, 1, shared, until);
        if (!got || !*got) return got;
    }
    Result<bool> got = take_flock(fd_, shared, until);
    if (got && *got) return got;
    if (writable_) unlock(holder_byte, 1);
    return got;
}

void LockFile::let_go() const {
    ::flock(fd_, LOCK_UN);
    if (writable_) unlock(holder_byte, 1);
}

bool LockFile::still_named() const {
    if (borrowed_) return true;
    struct stat ours = {}, named = {};
    if (::fstat(fd_, &ours) != 0 || ours.st_nlink == 0) return false;
    if (!waited_) return true;
    return ::lstat(path_.c_str(), &named) == 0 && named.st_dev == ours.st_dev && named.st_ino == ours.st_ino;
}

Result<Guard> Guard::take(const LockFile &file) {
    constexpr int turns = 100;
    for (int i = 0; i < turns; ++i) {  // usually free within microseconds: cheaper than a timer
        Result<bool> got = file.lock(guard_byte, 1, false, Deadline::none());
        if (!got) return got.status();
        if (*got) return Guard(&file);
        ::sched_yield();
    }
    constexpr std::int64_t patience = 5'000'000'000;
    Result<bool> got = file.lock(guard_byte, 1, false, Deadline{boot_clock().ns + patience});
    if (!got) return got.status();
    if (*got) return Guard(&file);
    if (file.first_locked(guard_byte, 1) < guard_byte)
        return fail(Code::refused, file.path() + " is locked as a whole by a program that uses fcntl(2)");
    return fail(Code::io_error,
                "the guard of lock " + file.path() + " is held by a stopped process; continue or end it");
}

}  // namespace dcs::locks
