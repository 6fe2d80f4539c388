#pragma once
// Decides how far the record in a lock file is trusted when a process is to be ended on its evidence. Any process that
// can write the file may have forged the record. So a record ends no process that its writers could not have ended
// themselves, and no process that does not hold this lock; the kernel's account of processes and locks decides.
#include <cstdint>
#include <optional>

#include <sys/types.h>

#include "locks/kill_carefully.h"
#include "locks/files/lock_file.h"
#include "locks/files/record.h"

namespace dcs::locks {

struct Belief {
    Owner owner;                // the trusted part of the record
    std::optional<uid_t> only;  // processes of other accounts are not ended; no value: no restriction
};
// `owner` was read from `file` and concerns the lock on `byte`; `caller` is the account that wants to end it.
// Code::refused: the record is not trusted at all; the text gives the reason and a remedy.
//
// A file of root that no other user can write is trusted. A file of another owner that no other user can write is
// trusted about that owner's processes. A file that others can write is trusted about those of the caller's own
// processes that hold the lock, and their descendants; for a request of root only if the file belongs to root. A file
// with several hard links is not trusted, as it may be the lock of something else.
Result<Belief> believe(const LockFile &file, std::int64_t byte, const Owner &owner, uid_t caller);
// kill_carefully() with the trusted part of the record. Killed::not_permitted gives the reason.
KillReport kill_believed(const World &world, const LockFile &file, std::int64_t byte, const Owner &owner,
                         const KillGrace &grace);
// Whether this process may be signalled because the file lists it as the waiter with its ticket on `byte`.
Status believe_waiter(const LockFile &file, std::int64_t byte, const ProcessIdentity &process, uid_t caller);

}  // namespace dcs::locks
