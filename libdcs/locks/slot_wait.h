#pragma once
// How who stands first at a full limit waits for a slot without polling: for a bell (a FIFO beside the head) that
// is rung at each release, and for the ends of the holders' processes.
#include <vector>

#include "base/fd.h"
#include "locks/slot_table.h"

namespace dcs::locks {

class Bell {
public:
    // Made if it is missing.
    static Result<Bell> open(const Place &head, unsigned mode);
    int fd() const { return fd_.get(); }
    void hush() const;  // forgets what was rung until now
    // Wakes who waits, if anybody ever did.
    static void ring(const Place &head);

private:
    explicit Bell(Fd fd) : fd_(std::move(fd)) {}
    Fd fd_;
};

// Until something may have changed for one of the slots that were `held`; the bell was opened before they were
// looked at. False: the deadline came.
Result<bool> wait_for_change(const Bell &bell, const Place &head, const std::vector<SlotHolder> &held,
                             const Deadline &until);

}  // namespace dcs::locks
