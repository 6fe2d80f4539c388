#pragma once
// Strict order of arrival (001): a place in the queue is a kernel lock on a byte of its own, so that a dead
// waiter's place is free at once, and a waiter waits for the byte of the one before it: one wake-up for each
// hand-over, no polling, no starvation.
#include <cstdint>
#include <string>
#include <vector>

#include "locks/lock_file.h"
#include "locks/process_identity.h"

namespace dcs::locks {

class QueuePlace {
public:
    QueuePlace() = default;
    QueuePlace(QueuePlace &&other) noexcept;
    QueuePlace &operator=(QueuePlace &&other) noexcept;
    ~QueuePlace();  // leaves

    // The last place. The lock is of `file`'s description, and `file` outlives the place.
    static Result<QueuePlace> enter(const LockFile &file, bool shared);
    // True: nobody lives before us any more (for shared places: no exclusive one). What the queue guards is
    // still to be taken (LockFile::hold, a slot), by waiting, as it may have users that never queue.
    Result<bool> wait_for_turn(const Deadline &until);
    void leave();
    std::int64_t ticket() const { return ticket_; }

private:
    const LockFile *file_ = nullptr;
    std::int64_t ticket_ = -1;
};

struct Waiter {
    std::int64_t ticket = 0;
    ProcessIdentity process;  // pid 0: its note was overwritten
    std::int64_t since_wall = 0;
    bool shared = false;
    char state = '?';         // of proc(5): 'T' is stopped, and holds up all behind it
};
// In order, the first in the queue first.
std::vector<Waiter> waiters(const LockFile &file);

}  // namespace dcs::locks
