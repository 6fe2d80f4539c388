#pragma once
// One file per atom. The kernel locks on bytes far beyond its end decide who holds it. Its content consists of
// checksummed records and hints, and is rewritten when damaged. A lock file is never unlinked, and a kernel lock
// is never taken away from its holder. Layout: lock_header.h.
#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/status.h"
#include "locks/files/atom.h"
#include "locks/files/lock_header.h"

namespace dcs::locks {

// The end of a wait. Waits sleep in the kernel, without polling. A wait with a deadline uses a timer with
// a real-time signal that the program does not handle, aimed at the waiting thread alone.
struct Deadline {
    std::int64_t boot = INT64_MAX;  // CLOCK_BOOTTIME, nanoseconds; 0: do not wait
    static Deadline none() { return {0}; }
    static Deadline never() { return {}; }
};

enum class HeldAs { none, shared, exclusive };

class LockFile {
public:
    LockFile() = default;
    LockFile(LockFile &&) noexcept = default;
    LockFile &operator=(LockFile &&other) noexcept;
    ~LockFile();  // closes without unlocking: a child that inherited the description keeps the lock

    // Opens an existing file first (the kernel refuses O_CREAT of another user's file in a sticky directory);
    // else creates it whole under another name and links it, so that no process sees a partial header.
    // Symbolic links and FIFOs are refused. An existing object without a valid header is `foreign`, also a directory or
    // a read-only file; an empty file is `broken` if `place` permits its adoption.
    // `mode` is for a new file. Code::invalid: a link, or a file of another kind or atom than `kind` and
    // `place` state. Code::not_found: its directory is missing. Code::refused: no permission, or a file in the
    // caller's directory belongs to another user than the caller or root.
    static Result<LockFile> open(const Place &place, FileKind kind, unsigned mode = 0600);
    // Opens the file for inspection; Code::not_found if it is missing. Never creates, never writes.
    static Result<LockFile> look(const Place &place);
    // Wraps a descriptor of the user. Foreign; the destructor leaves it open.
    static LockFile around(int fd);

    int fd() const { return fd_.get(); }
    bool is_open() const { return static_cast<bool>(fd_); }
    FileKind kind() const { return kind_; }
    bool keeps_records() const { return kind_ == FileKind::atom || kind_ == FileKind::slots; }
    const std::string &path() const { return path_; }
    const Atom &atom() const { return atom_; }  // from the file's header; only after look()

    // Writes the header; no effect on a whole file. The caller holds holder_byte exclusively, or the guard.
    Status make_whole();

    // --- kernel locks; true: acquired, false: held by another owner (or the deadline came) ---------
    Result<bool> lock(std::int64_t byte, std::int64_t length, bool shared, const Deadline &until) const;
    void unlock(std::int64_t byte, std::int64_t length) const;
    // The first locked range that conflicts with an exclusive lock of [byte, byte + length); -1: none.
    // Own locks do not count. *end receives the end of that range (INT64_MAX: unbounded, as foreign lockers do).
    std::int64_t first_locked(std::int64_t byte, std::int64_t length, std::int64_t *end = nullptr) const;

    // Locks holder_byte and flock(2), both or none. A read-only descriptor takes flock alone.
    Result<bool> hold(bool shared, const Deadline &until);
    void let_go() const;
    // How others hold holder_byte at present.
    HeldAs held() const;
    // For use after a lock is acquired: whether the file still has its name. A file that was replaced guards nothing.
    // Checks the link count only, unless a lock was waited for: then the name too.
    bool still_named() const;

private:
    Fd fd_;
    bool borrowed_ = false;
    bool writable_ = true;
    mutable bool waited_ = false;
    FileKind kind_wanted_ = FileKind::atom;
    FileKind kind_ = FileKind::foreign;
    std::string path_;
    Atom atom_;
};

// Holds guard_byte during its lifetime, for microseconds. A stopped holder would block all others, so the wait is
// limited: Code::io_error "guard of PATH is held by a stopped process".
class Guard {
public:
    static Result<Guard> take(const LockFile &file);
    Guard(Guard &&other) noexcept : file_(std::exchange(other.file_, nullptr)) {}
    Guard &operator=(Guard &&) = delete;
    ~Guard() {
        if (file_ != nullptr) file_->unlock(guard_byte, 1);
    }

private:
    explicit Guard(const LockFile *file) : file_(file) {}
    const LockFile *file_;
};

}  // namespace dcs::locks
