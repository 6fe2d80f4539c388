#pragma once
// At most N at a time (002): a slot is a kernel lock on a byte of its own, so it is free again on any death
// of its last holder. N belongs to the request, and counts all who live, also above an N that was lowered.
// Shards of 64 slots in a file each keep every list of kernel locks short: taking a slot costs the same
// with 10,000 live as with 10.
#include <cstdint>
#include <string>
#include <vector>

#include "locks/lock_file.h"
#include "locks/record.h"

namespace dcs::locks {

constexpr int slots_per_file = 64;
constexpr int slots_max = 100'000;

struct SlotWish {
    Place place;   // shard 0; shard k is "PATH.k"
    int limit = 0; // 0: nobody
};

struct SlotHolder {
    int number = 0;
    bool held = false;    // else its last holder
    Owner owner;
    std::int64_t since_wall = 0, since_mono = 0;
    std::string note;     // of the holder, at most 64 bytes
};

// One slot in each of several limits, all or none.
class Slots {
public:
    Slots() = default;
    Slots(Slots &&other) noexcept;
    Slots &operator=(Slots &&other) noexcept;
    ~Slots();  // closes: inherited copies of the descriptors keep the slots

    // Without waiting (Deadline::none) Code::limit names the limit that is full and its holders. Waiting is in
    // order of arrival at each limit, woken by the release or the death of a holder. Files are visited in one order
    // (device,
    // inode), so that takers of several never block each other; a taker that has to wait for one holds none of the
    // others.
    static Result<Slots> take(const World &world, const std::vector<SlotWish> &wishes, const Deadline &until,
                              const std::string &note, unsigned mode = 0600);
    bool held() const { return !taken_.empty(); }
    std::vector<int> numbers() const;            // in the order of the wishes
    std::vector<int> lock_fds() const;           // to hand on
    void set_owner(const World &world, const Owner &owner);
    void release();   // at once, for all copies of the descriptors, and wakes who waits

private:
    struct Taken {
        LockFile head, shard;  // the same file for shard 0
        int number = 0;
    };
    std::vector<Taken> taken_;
};

// Takes nothing, makes nothing, waits for nothing.
Result<std::vector<SlotHolder>> slot_holders(const Place &place);

}  // namespace dcs::locks
