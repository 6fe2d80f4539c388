#pragma once
// How far the record in a lock file is believed when somebody is to be ended on its word. Whoever may write the file
// could have written it. So a record ends nobody whom its writers could not have ended themselves, and nobody who has
// not got this very lock; what the kernel says about processes and locks decides, and not what the file says.
#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "locks/kill_carefully.h"
#include "locks/lock_file.h"
#include "locks/record.h"

namespace dcs::locks {

struct Belief {
    Owner owner;                  // as far as it is believed
    std::optional<uid_t> only;    // processes of other accounts are not ended; nothing: whoever it may be
};
// `owner` as it was read from `file`, whose lock on `byte` it is about; `caller`: who wants to end it. Code::refused:
// it is not believed at all; says why, and what to do.
//
// File of root that nobody else may write: believed. File of another owner that nobody else may write: about that
// owner's processes. A file that others may write: about the caller's own processes which have the lock, and what
// these have started; of root's requests only where the file is root's. A file with several names is believed about
// nobody, as it may be the lock of something else.
Result<Belief> believe(const LockFile &file, std::int64_t byte, const Owner &owner, uid_t caller);
// kill_carefully() of what is believed. Killed::not_permitted says why not.
KillReport kill_believed(const World &world, const LockFile &file, std::int64_t byte, const Owner &owner,
                         const KillGrace &grace);
// May this one process, which the file says waits with its ticket on `byte`, be signalled on its word?
Status believe_waiter(const LockFile &file, std::int64_t byte, const ProcessIdentity &process, uid_t caller);

}  // namespace dcs::locks
