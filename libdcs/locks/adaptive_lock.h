#pragma once
// GetLock and ReleaseCurrentLock of the paper: busy -> denied; too soon -> denied; expired -> its owner is ended with
// care and the atom taken over; else taken. Between check and set nothing can happen, because the check is
// made by who holds the kernel lock already.
#include <cstdint>
#include <string>

#include "locks/lock_request.h"
#include "locks/run_log.h"

namespace dcs::locks {

// A granted lock. Moves; the destructor releases it as `done`, but in the process that took it only: a forked
// child has a copy, and may release it by word.
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
    std::int64_t soft() const { return soft_; }   // limits in force for this run
    std::int64_t hard() const { return hard_; }
    int fd() const { return file_.fd(); }
    const Place &place() const { return place_; }
    // The one who does the work is another process than the taker: a supervisor's command, or a forked child.
    void set_owner(const Owner &owner);
    void adopt();  // that one is the caller

    struct End {
        Outcome outcome = Outcome::done;
        Moment ended;         // all 0: now
        std::int64_t cpu = -1, io = -1;
        bool progressing = false;
        bool inherited = false;  // copies of the descriptor keep the kernel lock
    };
    // The run is stamped, sampled and logged before the kernel lock goes. A copy of the descriptor that a child still
    // has loses the lock too, unless `inherited` says otherwise.
    void release(const End &end);
    // Gives up this process's share without a word: the lock lives on in inherited descriptors.
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

// What is known of an atom, without taking or making anything.
struct AtomState {
    bool exists = false, held = false, foreign = false, damaged = false;
    bool shared = false;          // held by shared holders
    Record record;
    std::int64_t waiting = 0;     // places in the queue
};
Result<AtomState> look_at(const World &world, const Place &place);

}  // namespace dcs::locks
