#pragma once
// One file per atom. The truth about who holds it are kernel locks on bytes far beyond its end; what is
// written in it is a record or a hint, checksummed, and made anew when it is damaged. Nothing is ever
// unlinked, nothing is ever taken from somebody who holds a kernel lock.
//
//   byte            lock                         who
//   0               OFD, and flock(2) on it      the holder; excludes users of flock, chpst, lckdo too
//   guard_byte      OFD, held for microseconds   who changes the queue's counter, refusals, slot hints
//   reaper_byte     OFD                          the one requester who ends an expired holder
//   slot_byte + k   OFD                          holder of counted slot k of this shard (slots.h)
//   2^40 + n        OFD                          who works for session n (session_claims.h)
//   ticket_byte + t OFD                          place t of the queue (queue.h)
//
//   content         (little endian)
//   0    header     512  text: "dcs_lock 1 atom\n", then length and hash of the name, then the name if short
//   512  record A   512  \ written in turn; the valid one with the higher sequence counts
//   1024 record B   512  /
//   1536 counter     64  of the queue (a hint; the locks decide)
//   2048 samples   8192  128 runs of 64 bytes, a ring (sample.h)
//   10240 refusals 4096  64 of 64 bytes, a ring
//   14336 waiters 16384  256 of 64 bytes, by ticket
//   32768 slots          shard of slots: 64 of 256 bytes; after them hints, one byte for each slot
//   131072 long names
#include <cstdint>
#include <string>

#include "base/status.h"
#include "locks/atom.h"

namespace dcs::locks {

constexpr std::int64_t holder_byte = 0;
constexpr std::int64_t guard_byte = std::int64_t{1} << 50;
constexpr std::int64_t reaper_byte = guard_byte + 1;
constexpr std::int64_t slot_byte = guard_byte + (std::int64_t{1} << 20);
constexpr std::int64_t ticket_byte = std::int64_t{1} << 51;
constexpr std::int64_t last_byte = std::int64_t{1} << 62;  // tickets stay below

constexpr std::int64_t header_at = 0, record_a_at = 512, record_b_at = 1024, counter_at = 1536, samples_at = 2048,
                       refusals_at = 10240, waiters_at = 14336, slots_at = 32768, long_names_at = 131072;
constexpr std::size_t record_bytes = 512;

enum class FileKind : std::uint8_t {
    atom,     // made by us, for one atom
    slots,    // made by us, a shard of counted slots
    foreign,  // somebody else's: locked, never written
    broken,   // ours without a whole header (empty, truncated, damaged): locked; see make_whole()
};

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
    LockFile(LockFile &&other) noexcept { *this = std::move(other); }
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

    int fd() const { return fd_; }
    int release_fd() { return std::exchange(fd_, -1); }
    bool is_open() const { return fd_ >= 0; }
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
    int fd_ = -1;
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
