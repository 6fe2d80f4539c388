#pragma once
// GetLock and ReleaseCurrentLock of the paper: busy -> denied; too soon -> denied; expired -> the owner is ended with
// care and the atom taken over; else taken. The check is made under the kernel lock, so check and grant are atomic.
#include <cstdint>

#include "locks/lock_request.h"
#include "locks/files/run_log.h"

namespace dcs::locks {

// A granted lock; movable. The destructor releases it as `done` in the process that took it. A forked child has a
// copy, whose destructor abandons it; the child may call release().
class AdaptiveLock {
public:
    AdaptiveLock() = default;
    AdaptiveLock(AdaptiveLock &&) noexcept = default;
    AdaptiveLock &operator=(AdaptiveLock &&) noexcept;
    ~AdaptiveLock();

    static Answer get(const World &world, const LockRequest &request, AdaptiveLock &lock);

    bool held() const { return file_.is_open(); }
    std::uint64_t generation() const { return record_.generation; }  // fencing token
    std::uint64_t cookie() const { return record_.owner.cookie; }
    const Owner &owner() const { return record_.owner; }
    std::int64_t soft() const { return soft_; }  // limits in force for this run
    std::int64_t hard() const { return hard_; }
    int fd() const { return file_.fd(); }
    const Place &place() const { return place_; }
    // Records another process than the taker as the owner: a supervisor's command, or a forked child.
    void set_owner(const Owner &owner);
    void adopt();  // records the calling process as the owner

    struct End {
        Outcome outcome = Outcome::done;
        Moment ended;  // all 0: now
        std::int64_t cpu = -1, io = -1;
        bool progressing = false;
        bool inherited = false;  // copies of the descriptor keep the kernel lock
    };
    // Writes the record, the sample and the log line before it drops the kernel lock. The lock also ends for copies of
    // the descriptor in children, unless `inherited` is set.
    void release(const End &end);
    // Closes this process's descriptor and records nothing; inherited descriptors keep the lock.
    void abandon();

private:
    const World *world_ = nullptr;
    LockFile file_;
    Place place_;
    Record record_;
    std::int64_t soft_ = no_limit, hard_ = no_limit, waited_ = 0;
    bool shared_ = false, log_ = true;
    pid_t taker_ = 0;  // the process whose destructor releases it
};

// The state of an atom, read without taking a lock or creating a file.
struct AtomState {
    bool exists = false, held = false, foreign = false, damaged = false;
    bool shared = false;  // held by shared holders
    Record record;
    std::int64_t waiting = 0;  // places in the queue
};
Result<AtomState> look_at(const World &world, const Place &place);

}  // namespace dcs::locks
