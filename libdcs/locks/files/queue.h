#pragma once
// A queue in strict order of arrival. A place is a kernel lock on a byte of its own, so the place of a dead waiter is
// free at once. A waiter waits for the byte of its predecessor: one wake-up per hand-over, no polling, no starvation.
// Adjacent shared places have their turn together; a later exclusive one waits for them, and its successors for it.
#include <cstdint>
#include <vector>

#include "locks/files/lock_file.h"
#include "process/identity.h"

namespace dcs::locks {

class QueuePlace {
public:
    QueuePlace() = default;
    QueuePlace(QueuePlace &&other) noexcept { *this = std::move(other); }
    QueuePlace &operator=(QueuePlace &&other) noexcept;
    ~QueuePlace() { leave(); }

    // Takes the last place. The lock belongs to `file`'s description, which has one place at a time; `file` outlives
    // the place. While another program has locked the whole file (as lckdo does), no place can be taken;
    // wait_for_turn() takes it then.
    static Result<QueuePlace> enter(const LockFile &file, bool shared);
    // True: no predecessor is left (for shared places: no exclusive one). The resource that the queue guards is
    // still to be acquired (LockFile::hold, a slot), by waiting, as it may have users that do not queue. False: the
    // deadline came; the place is kept until leave().
    Result<bool> wait_for_turn(const Deadline &until);
    void leave();
    std::int64_t ticket() const { return ticket_; }  // -1: none

private:
    Status get_ticket();
    const LockFile *file_ = nullptr;
    std::int64_t ticket_ = -1;
    bool shared_ = false;
};

struct Waiter {
    std::int64_t ticket = 0;
    ProcessIdentity process;  // pid 0: not known: its note was overwritten, or only a child of it is alive
    std::int64_t since_wall = 0;
    bool shared = false;
    char state = '?';  // of proc(5): 'T' is stopped, and blocks all waiters behind it
};
// In the order of the queue.
std::vector<Waiter> waiters(const LockFile &file);
// Whether there is a waiter other than the places of this description.
bool has_waiters(const LockFile &file);

}  // namespace dcs::locks
