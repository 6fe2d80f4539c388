#pragma once
// The content of the files of counted slots. The head (shard 0) has one byte for each slot ever used: '1'
// held, '0' free. The byte is a hint that may only overcount: '1' is written before a slot is granted, and
// '0' only by a process that, under the guard, unlocks the slot's byte or finds it unlocked. A zero, a wrong header or
// a file that is too short indicates damage; the hints are then rebuilt from the kernel's locks.
#include <map>
#include <string>
#include <vector>

#include "locks/files/lock_file.h"
#include "locks/files/record.h"

namespace dcs::locks {

constexpr int slots_per_file = 64;
constexpr int slots_max = 65'536;

struct SlotHolder {
    int number = 0;
    bool held = false;  // false: the owner is the last holder
    bool left = false;  // the owner released it; if it is still held, then by a process that inherited the descriptor
    Owner owner;
    std::int64_t since_wall = 0, since_mono = 0;
    std::string note;  // of the holder, at most 64 bytes
};

Place shard_place(const Place &head, int shard);

// The slots of one limit, seen from one description of its head. All but holders() require the guard.
class SlotTable {
public:
    SlotTable(const Place &place, const LockFile &head) : place_(place), head_(head) {}

    // Reads the hints and rebuilds damaged ones, in the file only if `may_write`.
    Status load(bool may_write);
    // Locks a free slot if fewer than `limit` are held, else -1. `shard` has the lock unless the slot is in the head.
    Result<int> take(int limit, LockFile *shard, unsigned mode);
    void give_back(int number, const LockFile &file);
    int held() const { return held_; }
    std::vector<SlotHolder> holders(bool only_held);

private:
    Status rebuild(bool may_write);
    bool find_dead(int limit);
    bool is_locked(int number);
    bool write_hint(int number, char state);
    const LockFile *shard_file(int shard);

    const Place &place_;
    const LockFile &head_;
    std::string states_;
    int held_ = 0;
    std::map<int, LockFile> looked_at_;
};

// The caller owns the slot; `file` has its lock.
Status write_holder(const LockFile &file, const SlotHolder &holder);
SlotHolder read_holder(const LockFile &file, int number);

}  // namespace dcs::locks
