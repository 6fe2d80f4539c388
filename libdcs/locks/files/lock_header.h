#pragma once
// The layout of a lock file, and the owners of its locked bytes.
//
//   byte            lock                         owner
//   0               OFD, and flock(2) on it      the holder; excludes users of flock, chpst and lckdo too
//   guard_byte      OFD, held for microseconds   a process that changes the queue's counter, refusals or slot hints
//   reaper_byte     OFD                          the one requester that ends an expired holder
//   slot_byte + k   OFD                          holder of counted slot k of this shard (slot_table.h)
//   2^40 + n        OFD                          the process that works for session n (session_claims.h)
//   ticket_byte + t OFD                          place t of the queue (queue.h)
//   last_byte + ... OFD, shared                  servers that have these uids (uid_claims.h)
//
//   content         (little endian)
//   0    header     512  text: "dcs_lock 1 atom\n", then length and hash of the name, then the name if short
//   512  record A   512  \ written in turn; the valid one with the higher sequence counts
//   1024 record B   512  /
//   1536 counter     64  of the queue (a hint; the locks decide)
//   2048 samples   8192  128 runs of 64 bytes, a ring (record.h)
//   10240 refusals 4096  64 of 64 bytes, a ring
//   14336 waiters 16384  256 of 64 bytes, by ticket
//   32768 slots          shard of slots: 64 of 256 bytes; after them hints, one byte for each slot
//   131072 long names
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "locks/files/atom.h"

namespace dcs::locks {

constexpr std::int64_t holder_byte = 0;
constexpr std::int64_t guard_byte = std::int64_t{1} << 50;
constexpr std::int64_t reaper_byte = guard_byte + 1;
constexpr std::int64_t slot_byte = guard_byte + (std::int64_t{1} << 20);
constexpr std::int64_t ticket_byte = std::int64_t{1} << 51;
constexpr std::int64_t last_byte = std::int64_t{1} << 62;  // the queue stays below

constexpr std::int64_t header_at = 0, record_a_at = 512, record_b_at = 1024, counter_at = 1536, samples_at = 2048,
                       refusals_at = 10240, waiters_at = 14336, slots_at = 32768, long_names_at = 131072;
constexpr std::size_t record_bytes = 512;

enum class FileKind : std::uint8_t {
    atom,     // created by DCS, for one atom
    slots,    // created by DCS, a shard of counted slots
    foreign,  // not a lock file of DCS: locked, never written
    broken,   // a lock file without a whole header (empty, truncated, damaged): locked; see make_whole()
};

// The first 512 bytes of a lock file: text that identifies the file, readable with `head -3 FILE`.

// 0, or -1 with errno. A long name is stored at long_names_at.
int write_header(int fd, FileKind kind, const Atom &atom);

// The kind of the file, and the atom if its header is valid; otherwise foreign, or broken if part of a header is left
// or an empty file may be adopted.
FileKind recognise(int fd, bool adopt, Atom *atom);

// The same for a caller that opens the file at `place` to use it as `wanted`; errors as LockFile::open.
Status judge(int fd, const Place &place, FileKind wanted, FileKind *kind);
// For a caller that is about to create the file at `place`.
Status check_one_kind(const Place &place, FileKind wanted);

}  // namespace dcs::locks
