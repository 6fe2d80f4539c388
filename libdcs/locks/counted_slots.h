#pragma once
// Counted slots: at most N holders at a time, as in exectimes. A slot is a kernel lock on a byte of its own, so it is
// freed by any death of its last holder. N belongs to the request; all present holders count, even if there are more
// than a lowered N. Shards of 64 slots per file keep the kernel's lists of locks short: with 10,000 holders, taking a
// slot costs about twice what it costs with 10.
#include <string>
#include <vector>

#include "locks/files/lock_file.h"
#include "locks/files/slot_table.h"

namespace dcs::locks {

struct SlotWish {
    Place place;    // shard 0; shard k is "PATH.k", and "PATH.bell" wakes waiters
    int limit = 0;  // 0: no slot is permitted
};

// One slot in each of several limits, all or none.
//
// While a requester waits, a slot that becomes free is granted to no later one, waiting or not. A waiter is woken by
// release(), by the destructor, and by the end of a process that a slot's record names. The loss of a slot in another
// way (the process executed another program without passing the descriptor on) is noticed at the next change.
class Slots {
public:
    Slots() = default;
    Slots(Slots &&other) noexcept;
    Slots &operator=(Slots &&other) noexcept;
    ~Slots();        // closes: inherited copies of the descriptors keep the slots
    void abandon();  // the same

    // Without waiting (Deadline::none) Code::limit names the full limit and its holders. Waiters are served in order of
    // arrival at each limit. Files are visited in one order (device, inode), so that requests for several limits never
    // block each other; a request that has to wait for one limit holds none of the others and queues at one at a time.
    // Code::invalid: no wish, one file twice, a limit below 0 or above slots_max. Code::no_space, Code::io_error.
    static Result<Slots> take(const World &world, const std::vector<SlotWish> &wishes, const Deadline &until,
                              const std::string &note, unsigned mode = 0600);
    bool held() const { return !taken_.empty(); }
    std::vector<int> numbers() const;   // in the order of the wishes
    std::vector<int> lock_fds() const;  // to be inherited
    void set_owner(const World &world, const Owner &owner);
    void release();  // at once, for all copies of the descriptors; wakes waiters

private:
    struct Taken {
        Place place;
        LockFile head, shard;  // the head has the lock of a slot below slots_per_file, and no shard is open
        int number = 0;
        const LockFile &locked() const { return shard.is_open() ? shard : head; }
    };
    std::vector<Taken> taken_;
};

// Takes no lock, creates no file and does not wait. If a slot is held but the process in its record is gone, the owner
// is a process that has the descriptor, or pid 0 if none can be seen.
Result<std::vector<SlotHolder>> slot_holders(const Place &place);

}  // namespace dcs::locks
