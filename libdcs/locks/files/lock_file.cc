#include "locks/files/lock_file.h"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/planted.h"
#include "base/require.h"

namespace dcs::locks {
namespace {

void do_nothing(int) {}

// One that the program has no use for: no handler of its own, and rather one that this thread does not block, as for
// signalfd. Its handler stays, since a signal of the timer may come late. 0: there is none.
int wait_signal() {
    sigset_t blocked;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    for (const bool also_blocked : {false, true})
        for (int number = SIGRTMAX - 1; number >= SIGRTMIN; --number) {
            struct sigaction action = {};
            if (!also_blocked && ::sigismember(&blocked, number) != 0) continue;
            if (::sigaction(number, nullptr, &action) != 0) continue;
            if (action.sa_handler == do_nothing) return number;
            if (action.sa_handler != SIG_DFL) continue;
            action.sa_handler = do_nothing;
            action.sa_flags = 0;  // no SA_RESTART, so that the call returns
            if (::sigaction(number, &action, nullptr) == 0) return number;
        }
    return 0;
}

// Makes a blocking system call of this thread fail with EINTR after a deadline: the timer fires at the deadline and
// then every 10 ms, because a signal just before the call would be missed.
class WaitTimer {
public:
    explicit WaitTimer(std::int64_t boot_ns);  // CLOCK_BOOTTIME; INT64_MAX: no timer
    WaitTimer(const WaitTimer &) = delete;
    WaitTimer &operator=(const WaitTimer &) = delete;
    ~WaitTimer();
    bool passed() const;
    bool works() const { return works_; }  // false: the kernel provided no timer; the caller must not wait

private:
    std::int64_t deadline_;
    timer_t timer_ = {};
    bool armed_ = false, works_ = true;
    sigset_t before_ = {};
};

WaitTimer::WaitTimer(std::int64_t boot_ns) : deadline_(boot_ns) {
    if (boot_ns == INT64_MAX) return;
    const int signal = wait_signal();
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal;
    event._sigev_un._tid = ::gettid();
    works_ = signal != 0 && ::timer_create(CLOCK_BOOTTIME, &event, &timer_) == 0;
    if (!works_) return;
    armed_ = true;
    sigset_t ours;
    ::sigemptyset(&ours);
    ::sigaddset(&ours, signal);
    ::pthread_sigmask(SIG_UNBLOCK, &ours, &before_);
    itimerspec when = {};
    when.it_value.tv_sec = boot_ns / 1'000'000'000;
    when.it_value.tv_nsec = boot_ns % 1'000'000'000;
    if (boot_ns <= 0) when.it_value.tv_nsec = 1;  // zero would disarm the timer

    when.it_interval.tv_nsec = 10'000'000;
    ::timer_settime(timer_, TIMER_ABSTIME, &when, nullptr);
}

WaitTimer::~WaitTimer() {
    if (!armed_) return;
    ::timer_delete(timer_);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool WaitTimer::passed() const {
    if (deadline_ == INT64_MAX) return false;
    return boot_clock().ns >= deadline_;
}

constexpr int replaced_tries = 64;  // a file that is replaced more often than this is under attack

struct flock range_of(std::int64_t byte, std::int64_t length, short type) {
    struct flock range = {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = byte;
    range.l_len = length;
    return range;
}

// Opens an existing file; `writable`: also for writing. O_NONBLOCK: a planted FIFO must not block the caller.
Fd open_existing(const std::string &path, bool &writable) {
    const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    writable = true;
    Fd fd(::open(path.c_str(), O_RDWR | flags));
    if (!fd && (errno == EACCES || errno == EISDIR || errno == EROFS)) {
        writable = false;
        fd = Fd(::open(path.c_str(), O_RDONLY | flags));
    }
    return above_standard(std::move(fd));
}

Status cannot_open(const std::string &path) {
    switch (errno) {
    case ELOOP: return fail(Code::invalid, path + " is a symbolic link, not a lock file");
    case ENOENT: return fail_errno(Code::not_found, "cannot open lock file " + path, errno);
    case EACCES:
    case EPERM: return fail_errno(Code::refused, "cannot open lock file " + path, errno);
    case ENOSPC:
    case EDQUOT: return fail_errno(Code::no_space, "cannot create lock file " + path, errno);
    default: return fail_errno(Code::io_error, "cannot open lock file " + path, errno);
    }
}

constexpr unsigned mode_at_first = 0600;
// A launcher may not change modes.
bool has_mode(int fd, unsigned mode) { return mode == mode_at_first || ::fchmod(fd, mode) == 0; }

// Creates a whole lock file under `path`; none with errno on failure. EEXIST: another process was faster.
Fd make_file(const Place &place, FileKind kind, unsigned mode) {
    const std::string &path = place.path;
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    Fd fd = above_standard(Fd(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode_at_first)));
    if (!fd && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        // A file system without O_TMPFILE: creates an empty file, which its first holder completes.
        const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
        Fd plain = above_standard(Fd(::open(path.c_str(), flags, mode_at_first)));
        if (!plain || !has_mode(plain.get(), mode) || write_header(plain.get(), kind, place.atom) != 0) return {};
        return plain;
    }
    if (!fd) return {};
    const std::string self = "/proc/self/fd/" + std::to_string(fd.get());
    const bool made = has_mode(fd.get(), mode) && write_header(fd.get(), kind, place.atom) == 0 &&
                      ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
    return made ? std::move(fd) : Fd();
}

// Takes flock(2) for the owner of the byte. A holder that exits loses its byte a moment before its flock. A requester
// that does not wait bridges that moment; a program that holds only flock(2) holds it longer.
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
    if (!timer.works()) return fail(Code::io_error, "the kernel provides no timer for the wait");
    while (::flock(fd, how) != 0) {
        if (errno != EINTR) return fail_errno(Code::io_error, "flock", errno);
        if (timer.passed()) return false;
    }
    return true;
}

}  // namespace

LockFile &LockFile::operator=(LockFile &&other) noexcept {
    if (this == &other) return *this;
    std::destroy_at(this);
    return *std::construct_at(this, std::move(other));
}

LockFile::~LockFile() {
    if (borrowed_) fd_.release();
}

Result<LockFile> LockFile::open(const Place &place, FileKind kind, unsigned mode) {
    for (int tries = 0; tries < replaced_tries; ++tries) {
        LockFile file;
        file.fd_ = open_existing(place.path, file.writable_);
        if (!file.fd_ && errno != ENOENT) return cannot_open(place.path);
        file.path_ = place.path;
        file.kind_wanted_ = kind;
        if (!file.fd_) {
            if (Status s = check_one_kind(place, kind); !s) return s;
            file.fd_ = make_file(place, kind, mode);
            if (!file.fd_ && errno == EEXIST) continue;
            if (!file.fd_) return cannot_open(place.path);
            file.kind_ = kind;
            return file;
        }
        if (Status s = judge(file.fd(), place, kind, &file.kind_); !s) return s;
        if (!file.writable_ && file.kind_ != FileKind::foreign) {
            if (::access(place.path.c_str(), W_OK) != 0 && errno == EROFS)
                return fail_errno(Code::io_error, "cannot write lock file " + place.path, EROFS);
            return fail(Code::refused, "no permission to write lock file " + place.path);
        }
        if (file.kind_ == FileKind::broken) file.atom_ = place.atom;  // for make_whole()
        return file;
    }
    return fail(Code::io_error, "lock file " + place.path + " is being replaced continually");
}

Result<LockFile> LockFile::look(const Place &place) {
    LockFile file;
    file.fd_ = open_existing(place.path, file.writable_);
    if (!file.fd_) return cannot_open(place.path);
    file.path_ = place.path;
    file.atom_ = place.atom;
    file.kind_ = recognise(file.fd(), place.adopt, &file.atom_);
    file.kind_wanted_ = file.kind_;
    return file;
}

LockFile LockFile::around(int fd) {
    LockFile file;
    file.fd_ = Fd(fd);
    file.borrowed_ = true;
    file.writable_ = (::fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    file.path_ = "descriptor " + std::to_string(fd);
    return file;
}

Status LockFile::make_whole() {
    DCS_REQUIRE(is_open() && (kind_ != FileKind::broken || !borrowed_), "a user's descriptor is never written");
    if (kind_ != FileKind::broken) return Status::ok();
    if (write_header(fd(), kind_wanted_, atom_) != 0) return file_error("cannot write lock file " + path_, errno);
    kind_ = kind_wanted_;
    return Status::ok();
}

Result<bool> LockFile::lock(std::int64_t byte, std::int64_t length, bool shared, const Deadline &until) const {
    DCS_REQUIRE(is_open() && byte >= 0 && length >= 0, "a lock covers bytes of an open file; length 0: all");
    struct flock range = range_of(byte, length, shared ? F_RDLCK : F_WRLCK);
    if (::fcntl(fd(), F_OFD_SETLK, &range) == 0) return true;
    const auto failed = [this] { return fail_errno(Code::io_error, "cannot lock " + path_, errno); };
    if (errno != EAGAIN && errno != EACCES) return failed();
    if (until.boot == 0 || (until.boot != INT64_MAX && until.boot <= boot_clock().ns)) return false;
    waited_ = true;
    const WaitTimer timer(until.boot);
    if (!timer.works()) return fail(Code::io_error, "the kernel provides no timer for the wait");
    while (::fcntl(fd(), F_OFD_SETLKW, &range) != 0) {
        if (errno != EINTR) return failed();
        if (timer.passed()) return false;
    }
    return true;
}

void LockFile::unlock(std::int64_t byte, std::int64_t length) const {
    struct flock range = range_of(byte, length, F_UNLCK);
    ::fcntl(fd(), F_OFD_SETLK, &range);
}

std::int64_t LockFile::first_locked(std::int64_t byte, std::int64_t length, std::int64_t *end) const {
    struct flock range = range_of(byte, length, F_WRLCK);
    if (::fcntl(fd(), F_OFD_GETLK, &range) != 0 || range.l_type == F_UNLCK) return -1;
    if (end != nullptr) *end = range.l_len == 0 ? INT64_MAX : range.l_start + range.l_len;
    return range.l_start;
}

HeldAs LockFile::held() const {
    struct flock range = range_of(holder_byte, 1, F_WRLCK);
    if (::fcntl(fd(), F_OFD_GETLK, &range) != 0 || range.l_type == F_UNLCK) return HeldAs::none;
    return range.l_type == F_RDLCK ? HeldAs::shared : HeldAs::exclusive;
}

Result<bool> LockFile::hold(bool shared, const Deadline &until) {
    DCS_REQUIRE(is_open(), "the file is open");
    if (planted("locks.hold_anyway")) return true;
    if (writable_) {
        Result<bool> got = lock(holder_byte, 1, shared, until);
        if (!got || !*got) return got;
    }
    Result<bool> got = take_flock(fd(), shared, until);
    if (got && *got) return got;
    if (writable_) unlock(holder_byte, 1);
    return got;
}

void LockFile::let_go() const {
    DCS_REQUIRE(is_open(), "only a held lock is released");
    ::flock(fd(), LOCK_UN);
    if (writable_) unlock(holder_byte, 1);
}

bool LockFile::still_named() const {
    DCS_REQUIRE(is_open(), "the file is open");
    if (borrowed_) return true;
    struct stat ours = {}, named = {};
    if (::fstat(fd(), &ours) != 0 || ours.st_nlink == 0) return false;
    if (!waited_) return true;
    return ::lstat(path_.c_str(), &named) == 0 && named.st_dev == ours.st_dev && named.st_ino == ours.st_ino;
}

Result<Guard> Guard::take(const LockFile &file) {
    DCS_REQUIRE(file.is_open(), "the guard is a byte of an open file");
    constexpr int turns = 100;
    for (int i = 0; i < turns; ++i) {  // usually free within microseconds: polling is cheaper than a timer
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
        return fail(Code::refused, "a program that uses fcntl(2) has locked the whole file " + file.path());
    return fail(Code::io_error,
                "the guard of lock " + file.path() + " is held by a stopped process; continue or end it");
}

}  // namespace dcs::locks
