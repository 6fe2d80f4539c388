#pragma once
// One file per atom. The truth about who holds it are kernel locks on bytes far beyond its end; what is
// written in it is a record or a hint, checksummed, and made anew when it is damaged. Nothing is ever
// unlinked, nothing is ever taken from somebody who holds a kernel lock. Where: file_layout.h.
#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/status.h"
#include "locks/atom.h"
#include "locks/file_layout.h"

namespace dcs::locks {

// Until when somebody waits. Waiting is the kernel's: no polling. A wait with an end uses a timer with
// signal SIGRTMAX-1, aimed at the waiting thread alone.
struct Deadline {
    std::int64_t boot = INT64_MAX;  // CLOCK_BOOTTIME, nanoseconds; 0: do not wait
    static Deadline none() { return {0}; }
    static Deadline never() { return {}; }
};

class LockFile {
public:
    LockFile() = default;
    LockFile(LockFile &&) noexcept = default;
    LockFile &operator=(LockFile &&other) noexcept;
    ~LockFile();  // closes, never unlocks by hand: a child that inherited the description keeps the lock

    // Opens what exists first (O_CREAT of somebody else's file in a sticky directory is refused by the
    // kernel), else makes it whole under another name and links it in, so that nobody sees half a header.
    // No symbolic links, no FIFOs. What is there and has none of our headers is `foreign`, also a directory or
    // a file that may only be read; one that is empty is `broken` if the place says that it may be adopted.
    // `mode` is for a new file. Code::invalid: a link, or another kind or another atom's file than `kind` and
    // `place` say. Code::not_found: its directory is missing. Code::refused: no permission, or its owner is
    // neither we nor root though it lies in our directory.
    static Result<LockFile> open(const Place &place, FileKind kind, unsigned mode = 0600);
    // The file if it exists, to look at: Code::not_found if not. Never creates, never writes.
    static Result<LockFile> look(const Place &place);
    // A descriptor of the user's. Foreign; the destructor leaves it open.
    static LockFile around(int fd);

    int fd() const { return fd_.get(); }
    int release_fd() { return fd_.release(); }
    bool is_open() const { return static_cast<bool>(fd_); }
    FileKind kind() const { return kind_; }
    bool keeps_records() const { return kind_ == FileKind::atom || kind_ == FileKind::slots; }
    const std::string &path() const { return path_; }
    const Atom &atom() const { return atom_; }  // as the file says; only after look()

    // Writes the header. Only by who holds holder_byte exclusively or the guard; does nothing to a whole file.
    Status make_whole();

    // --- kernel locks; true: got it, false: somebody else's (or the deadline came) -----------------
    Result<bool> lock(std::int64_t byte, std::int64_t length, bool shared, const Deadline &until) const;
    void unlock(std::int64_t byte, std::int64_t length) const;
    // The first locked range that conflicts with an exclusive lock of [byte, byte + length); -1: none.
    // Own locks do not count. Gives the end of that range too (INT64_MAX: unbounded, as foreign lockers do).
    std::int64_t first_locked(std::int64_t byte, std::int64_t length, std::int64_t *end = nullptr) const;

    // holder_byte and flock(2), both or none. A descriptor opened read-only takes flock alone.
    Result<bool> hold(bool shared, const Deadline &until);
    void let_go() const;
    // Once a lock is held: is this still the file of its name? One that was replaced meanwhile guards nothing.
    // Looks at the link count only, unless some lock was waited for: then at the name too.
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

// Holds guard_byte while it lives. Its holders hold it for microseconds; one that is stopped would stop
// everybody, so the wait has an end: Code::io_error "guard of PATH is held by a stopped process".
class Guard {
public:
    static Result<Guard> take(const LockFile &file);
    Guard(Guard &&other) noexcept : file_(std::exchange(other.file_, nullptr)) {}
    Guard &operator=(Guard &&) = delete;
    ~Guard() { if (file_ != nullptr) file_->unlock(guard_byte, 1); }

private:
    explicit Guard(const LockFile *file) : file_(file) {}
    const LockFile *file_;
};

}  // namespace dcs::locks
