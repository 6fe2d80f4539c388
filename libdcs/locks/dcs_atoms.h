#pragma once
// What DCS itself must never do twice at once: the one table of its atoms, and the one way to take them. Each
// operand is as coarse as the thing that must be alone, so lock files do not multiply.
#include <cstdint>
#include <span>
#include <string>

#include "locks/adaptive_lock.h"

namespace dcs::locks {

enum class DcsAtom : std::uint8_t {
    scheduler, store, backup, backup_store,
    grain_server, launcher, pool_work, accounts, slot, map, begin, call_in, collect, sweep, reread,
};

enum class KeptBy : std::uint8_t {
    lock,      // take_dcs_atom()
    slots,     // counted slots, taken by the launcher
    bytes,     // a byte of one file for each operand: session_claims.h
    command,   // dcs_lock, which dcs_begin starts
    process,   // one thread of the process that holds another atom
};

struct DcsAtomRow {
    DcsAtom atom;
    const char *name;     // the paper's operator
    const char *alone;    // what there is at most one of
    const char *operand;  // of what
    const char *file;     // lock file; empty: none
    KeptBy kept_by;
    DcsAtom within;       // KeptBy::process: whose thread; else itself
    const char *limits;   // ifelapsed and expireafter
    const char *why;
};

std::span<const DcsAtomRow> dcs_atoms();
const DcsAtomRow &dcs_atom(DcsAtom atom);

// Takes an atom that is kept by a lock file at `path`, waiting at most `patience` nanoseconds. Code::refused names
// the holder. It never expires: what daemons hold for life is theirs as long as they live.
Result<AdaptiveLock> take_dcs_atom(DcsAtom atom, const std::string &path, std::int64_t patience = 0);

// Is what was taken still what guards that name? Not when its file was removed or replaced meanwhile.
bool still_alone(const AdaptiveLock &lock);

// Who holds the lock file at `path`, by its record; 0: nobody, or nobody knows. Takes and makes nothing.
pid_t holder_of(const std::string &path);

}  // namespace dcs::locks
