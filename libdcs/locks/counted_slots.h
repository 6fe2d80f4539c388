#pragma once
// At most N at a time, as exectimes does it: a slot is a kernel lock on a byte of its own, so it is free again on
// any death of its last holder. N belongs to the request, and counts all who live, also above an N that was lowered.
// Shards of 64 slots in a file each keep every list of kernel locks short: with 10,000 live, taking a slot costs
// about twice what it costs with 10.
#include <cstdint>
#include <string>
#include <vector>

#include "locks/lock_file.h"
#include "locks/slot_table.h"

namespace dcs::locks {

struct SlotWish {
    Place place;   // shard 0; shard k is "PATH.k", and "PATH.bell" wakes who waits
    int limit = 0; // 0: nobody
};

// One slot in each of several limits, all or none.
//
// Where somebody waits, nobody else gets a slot that comes free, waiting or not. Who waits is woken by release(), by
// the destructor, and by the end of a process that the slot's record names. A process that lost its slot otherwise
// (it took one and executed another program without handing it on) is noticed at the next change.
class Slots {
public:
    Slots() = default;
    Slots(Slots &&other) noexcept;
    Slots &operator=(Slots &&other) noexcept;
    ~Slots();  // closes: inherited copies of the descriptors keep the slots
    void abandon();  // the same

    // Without waiting (Deadline::none) Code::limit names the limit that is full and its holders. Waiting is in
    // order of arrival at each limit. Files are visited in one order (device, inode), so that takers of several never
    // block each other; a taker that has to wait for one holds none of the others, and queues at one after the other.
    // Code::invalid: no wish, one file twice, a limit below 0 or above slots_max. Code::no_space, Code::io_error.
    static Result<Slots> take(const World &world, const std::vector<SlotWish> &wishes, const Deadline &until,
                              const std::string &note, unsigned mode = 0600);
    bool held() const { return !taken_.empty(); }
    std::vector<int> numbers() const;            // in the order of the wishes
    std::vector<int> lock_fds() const;           // to hand on
    void set_owner(const World &world, const Owner &owner);
    void release();   // at once, for all copies of the descriptors, and wakes who waits

private:
    struct Taken {
        Place place;
        LockFile head, shard;  // the head has the lock of a slot below slots_per_file, and no shard is open
        int number = 0;
        const LockFile &locked() const { return shard.is_open() ? shard : head; }
    };
    std::vector<Taken> taken_;
};

// Takes nothing, makes nothing, waits for nothing. Where the process of a record is gone and the slot is held, the
// owner is whoever has its descriptor, pid 0 if that cannot be seen.
Result<std::vector<SlotHolder>> slot_holders(const Place &place);

}  // namespace dcs::locks
