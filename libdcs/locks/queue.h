#pragma once
// Strict order of arrival: a place in the queue is a kernel lock on a byte of its own, so that a dead
// waiter's place is free at once, and a waiter waits for the byte of the one before it: one wake-up for each
// hand-over, no polling, no starvation. Neighbours with shared places have their turn together; a later
// exclusive one waits for them, and those who come after it wait for it.
#include <cstdint>
#include <string>
#include <vector>

#include "locks/lock_file.h"
#include "process/identity.h"

namespace dcs::locks {

class QueuePlace {
public:
    QueuePlace() = default;
    QueuePlace(QueuePlace &&other) noexcept { *this = std::move(other); }
    QueuePlace &operator=(QueuePlace &&other) noexcept;
    ~QueuePlace() { leave(); }

    // The last place. The lock is of `file`'s description, which has one place at a time; `file` outlives the
    // place. While a stranger has locked the file as a whole (lckdo does) nobody can have a place; it is got
    // in wait_for_turn() then.
    static Result<QueuePlace> enter(const LockFile &file, bool shared);
    // True: nobody lives before us any more (for shared places: no exclusive one). What the queue guards is
    // still to be taken (LockFile::hold, a slot), by waiting, as it may have users that never queue. False: the
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
    ProcessIdentity process;  // pid 0: not known, its note was overwritten or only a child of it lives
    std::int64_t since_wall = 0;
    bool shared = false;
    char state = '?';         // of proc(5): 'T' is stopped, and holds up all behind it
};
// In order, the first in the queue first.
std::vector<Waiter> waiters(const LockFile &file);
// Does anybody stand in the queue, other places of this description aside?
bool has_waiters(const LockFile &file);

}  // namespace dcs::locks
