#pragma once
// Counted slots: a directory with one lock file per slot, named "0", "1", ... At most `limit` are
// held at a time; the kernel frees a slot on any death of its last holder (W6, L5).
#include <string>
#include <vector>

#include "base/status.h"
#include "locks/kernel_lock.h"

namespace dcs::locks {

struct SlotState {
    int number = 0;
    bool held = false;
    std::string note;  // of the last taker; a hint
};

// Takes the lowest free slot below `limit` and stores its number; makes the directory (0700) if it
// is missing, its parent must be there. Does not wait for a slot: Code::limit when `limit` slots are
// held, counting those above a limit that was lowered since. The slot belongs to whoever holds a copy
// of the lock's descriptor. Takers of one directory go one at a time; Code::io_error when that turn
// does not come within five seconds (its holder is stopped).
Result<KernelLock> take_slot(const std::string &directory, int limit, const std::string &note,
                             int *number);

// Every slot that was ever used, by number. Empty if the directory cannot be read.
std::vector<SlotState> list_slots(const std::string &directory);

}  // namespace dcs::locks
