#pragma once
// One call of AdaptiveLock::get: opens the file, takes the kernel lock or finds it busy, decides, waits, and ends an
// expired holder. An uncontended request takes the holder's byte only; its owner reads the record and decides, so the
// check and the grant are one step.
#include <optional>

#include "locks/lock_request.h"
#include "locks/files/queue.h"
#include "locks/files/run_log.h"

namespace dcs::locks {

class Getting {
public:
    Getting(const World &world, const LockRequest &request);
    Answer run();

    // After a grant.
    LockFile file;
    Record record;
    std::int64_t soft = no_limit, hard = no_limit, waited = 0;

private:
    enum class Next { again, ended };  // again: repeat from the start with the new state

    Next turn();
    Next queue_up();
    Next with_lock();
    Next without_lock();
    Next wait_for_unknown();
    Next wait_until_expiry(const Ruling &ruling);
    Next reap();
    Next end_holder();
    Next take_over(std::uint64_t generation);

    Status open();
    Status check_foreign() const;
    void read();
    void settle();  // records the end of a run whose holder died
    void learn_limits();
    Asked asked(bool held);
    Next take(const Ruling &ruling);
    Next grant(const Ruling &ruling);
    Next deny(Denied why, const Ruling &ruling, const std::string &text);
    Next fail_with(Status status);
    bool over() const;                                 // the deadline has passed
    Deadline at_most(std::int64_t nanoseconds) const;  // the deadline, or sooner

    const World &world_;
    const LockRequest &request_;
    const Moment first_;  // the clocks at the start of the request
    Moment clock_;        // the latest reading of the clocks
    Moment pass_;
    std::optional<QueuePlace> place_;
    Answer answer_;
    std::int64_t if_elapsed_ = 0;
    std::string spammer_;
    bool damaged_ = false, settled_ = false;
    int opens_ = 0;
};

}  // namespace dcs::locks
