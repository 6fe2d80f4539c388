#pragma once
// One call of AdaptiveLock::get: opens, takes the kernel lock or finds it busy, decides, waits, ends who has
// expired. The uncontended way takes the holder's byte and nothing else: who has the byte reads the record
// and decides, so between check and set there is nothing.
#include <optional>

#include "locks/lock_request.h"
#include "locks/queue.h"
#include "locks/run_log.h"

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
    enum class Next { again, ended };  // again: from the top, with what has changed meanwhile

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
    void settle();                       // a run that nobody ended is ended in the record
    void learn_limits();
    Asked asked(bool held);
    Next take(const Ruling &ruling);
    Next grant(const Ruling &ruling);
    Next deny(Denied why, const Ruling &ruling, const std::string &text);
    Next fail_with(Status status);
    bool over() const;                   // the deadline has passed
    Deadline at_most(std::int64_t nanoseconds) const;  // the deadline, or sooner

    const World &world_;
    const LockRequest &request_;
    const Moment first_;                 // the clocks when the request came
    Moment clock_;                       // and the last time that they were read
    Moment pass_;
    std::optional<QueuePlace> place_;
    Answer answer_;
    std::int64_t if_elapsed_ = 0;
    std::string spammer_;
    bool damaged_ = false, settled_ = false;
    int opens_ = 0;
};

// Who has the lock, without taking it: exclusive holders, shared ones, nobody.
enum class HeldAs { nobody, shared, exclusive };
HeldAs held_as(const LockFile &file);

}  // namespace dcs::locks
