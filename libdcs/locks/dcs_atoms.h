#pragma once
// The table of the atoms that DCS itself uses, and the function that takes them. Each operand is as coarse as the
// resource it protects, so that lock files do not multiply.
#include <cstdint>
#include <span>
#include <string>

#include "locks/adaptive_lock.h"

namespace dcs::locks {

enum class DcsAtom : std::uint8_t {
    scheduler,
    store,
    backup,
    backup_store,
    grain_server,
    launcher,
    pool_work,
    pilots,
    page,
    accounts,
    uids,
    slot,
    map,
    begin,
    call_in,
    collect,
    sweep,
    reread,
};

enum class KeptBy : std::uint8_t {
    lock,     // take_dcs_atom()
    slots,    // counted slots, taken by the launcher
    bytes,    // a byte of one file for each operand: session_claims.h, uid_claims.h
    command,  // dcs_lock, started by dcs_begin
    process,  // one thread of the process that holds another atom
};

struct DcsAtomRow {
    DcsAtom atom;
    const char *name;     // the paper's operator
    const char *alone;    // what is unique
    const char *operand;  // for each of which it is unique
    const char *file;     // lock file; empty: none
    KeptBy kept_by;
    DcsAtom within;      // KeptBy::process: the atom of that process; else itself
    const char *limits;  // ifelapsed and expireafter
    const char *why;
};

std::span<const DcsAtomRow> dcs_atoms();
const DcsAtomRow &dcs_atom(DcsAtom atom);

// Takes an atom that is kept by a lock file at `path`, waiting at most `patience` nanoseconds. Code::refused names
// the holder. The lock never expires: a daemon holds it for its lifetime.
Result<AdaptiveLock> take_dcs_atom(DcsAtom atom, const std::string &path, std::int64_t patience = 0);

// False if the lock file was removed or replaced since the lock was taken, so that it no longer guards its name.
bool still_alone(const AdaptiveLock &lock);
// The same for a caller that asks often: `kept`, empty at first, is the file, open for the question.
bool still_alone(const AdaptiveLock &lock, LockFile &kept);

// True: the lock file was deleted, and its directory too, or another file has its name by now. A file system that does
// not answer for a while has not deleted it.
bool was_removed(const AdaptiveLock &lock);

// The holder of the lock file at `path` according to its record; 0: not held, or not known. Takes no lock, creates
// no file.
pid_t holder_of(const std::string &path);

}  // namespace dcs::locks
