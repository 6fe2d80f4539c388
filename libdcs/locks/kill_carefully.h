#pragma once
// "CONT, INT, TERM and KILL are sent in that order" (the paper, "Implementation") to every process of the holder's tree
// and to no other process.
#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "locks/files/lock_file.h"
#include "locks/files/record.h"
#include "locks/files/world.h"

namespace dcs::locks {

struct KillGrace {  // how long to wait for the end after each signal, nanoseconds
    std::int64_t after_int = 2'000'000'000, after_term = 5'000'000'000, after_kill = 10'000'000'000;
};

enum class Killed : std::uint8_t {
    gone,           // no process of the tree is running any more (or none was)
    unkillable,     // a process of it is in uninterruptible sleep, or out of reach
    not_permitted,  // a process of it belongs to another user
    own_ancestor,   // it is the caller or one of its ancestors (the paper's Figure 4): nothing was signalled
    elsewhere,      // other host, other pid namespace, or an earlier boot: nothing was signalled
};

struct KillReport {
    Killed result = Killed::gone;
    int signalled = 0;  // processes that received at least one signal
    std::string text;   // which process is left and why, for people; empty when gone
};

// Ends `owner`'s tree. A living supervisor is asked first (SIGTERM with the value expire_request; it owns the tree
// and ends it with the same care) and has the graces plus one second to do so. Then all members, found by cgroup,
// cookie, group, session and descent, are held as pidfds before the first signal; CONT accompanies each signal.
// `only`: processes of other accounts get no signal, whatever the caller's account.
KillReport kill_carefully(const World &world, const Owner &owner, const KillGrace &grace,
                          std::optional<uid_t> only = {});

class RunTree;
// Sends the signals until no process of the tree runs or all graces are over.
KillReport end_tree(RunTree &tree, const KillGrace &grace);

constexpr int expire_request = 0x6c6f636b;  // sigval of the SIGTERM that tells a supervisor to end its command

// Decides how far the record in a lock file is trusted when a process is to be ended on its evidence. Any process that
// can write the file may have forged the record. So a record ends no process that its writers could not have ended
// themselves, and no process that does not hold this lock; the kernel's account of processes and locks decides.
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
// `since_boot`: when the holder took the lock according to the file, by CLOCK_BOOTTIME; a file that others can write is
// not trusted if its holders are younger. 0: that does not matter.
Result<Belief> believe(const LockFile &file, std::int64_t byte, const Owner &owner, uid_t caller,
                       std::int64_t since_boot = 0);
// kill_carefully() with the trusted part of the record. Killed::not_permitted gives the reason. `held_for`: how long it
// has held the lock according to the file, if that is why it is ended; else negative.
KillReport kill_believed(const World &world, const LockFile &file, std::int64_t byte, const Owner &owner,
                         const KillGrace &grace, std::int64_t held_for = -1);
// Whether this process may be signalled because the file lists it as the waiter with its ticket on `byte`.
Status believe_waiter(const LockFile &file, std::int64_t byte, const ProcessIdentity &process, uid_t caller);

}  // namespace dcs::locks
