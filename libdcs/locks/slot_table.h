#pragma once
// What the files of counted slots hold. The head (shard 0) has one byte for each slot that was ever used: '1'
// held, '0' free. It is a hint that may only overcount, because '1' is written before a slot is granted and
// '0' only by who saw its byte unlocked under the guard (or unlocks it there). A zero, a wrong header or a
// file that is too short mean that it was damaged; it is made anew from the kernel's locks then.
#include <map>
#include <string>
#include <vector>

#include "locks/lock_file.h"
#include "locks/record.h"

namespace dcs::locks {

constexpr int slots_per_file = 64;
constexpr int slots_max = 65'536;

struct SlotHolder {
    int number = 0;
    bool held = false;    // else its last holder
    bool left = false;    // the owner let it go; if it is held, then by who inherited the descriptor
    Owner owner;
    std::int64_t since_wall = 0, since_mono = 0;
    std::string note;     // of the holder, at most 64 bytes
};

Place shard_place(const Place &head, int shard);

// The slots of one limit, seen from one description of its head. Everything but holders() under the guard.
class SlotTable {
public:
    SlotTable(const Place &place, const LockFile &head) : place_(place), head_(head) {}

    // Reads the hints. Damaged ones are made anew, in the file only if it `may_write`.
    Status load(bool may_write);
    // A slot if fewer than `limit` are held, else -1. It is locked then; `shard` has the lock unless it is in the head.
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

// By the owner of the slot; `file` has its lock.
Status write_holder(const LockFile &file, const SlotHolder &holder);
SlotHolder read_holder(const LockFile &file, int number);

}  // namespace dcs::locks
