#pragma once
// How the first waiter of a full limit waits without polling: for a bell (a FIFO beside the head) that
// is rung at each release, and for the ends of the holders' processes.
#include <vector>

#include "base/fd.h"
#include "locks/files/slot_table.h"

namespace dcs::locks {

class Bell {
public:
    // Creates the FIFO if it is missing.
    static Result<Bell> open(const Place &head, unsigned mode);
    int fd() const { return fd_.get(); }
    void hush() const;  // discards earlier rings
    // Wakes the waiters; no effect if there was never a waiter.
    static void ring(const Place &head);

private:
    explicit Bell(Fd fd) : fd_(std::move(fd)) {}
    Fd fd_;
};

// Waits until one of the slots in `held` may have changed. The caller opened the bell before it listed them. False: the
// deadline came.
Result<bool> wait_for_change(const Bell &bell, const Place &head, const std::vector<SlotHolder> &held,
                             const Deadline &until);

}  // namespace dcs::locks
