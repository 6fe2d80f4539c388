#pragma once
// GetLock and ReleaseCurrentLock of the paper: busy -> denied; too soon -> denied; expired -> its owner is ended with
// care and the atom taken over; else taken. Between check and set nothing can happen, because the check is
// made by who holds the kernel lock already.
#include <cstdint>
#include <string>

#include "locks/adaptive_rule.h"
#include "locks/kill_carefully.h"
#include "locks/learn.h"
#include "locks/lock_file.h"
#include "locks/run_log.h"

namespace dcs::locks {

constexpr std::int64_t automatic = -1;  // a limit that is learned

struct LockRequest {
    Place place;
    std::int64_t if_elapsed = 0;            // nanoseconds, or `automatic`
    std::int64_t expire_after = no_limit;   // nanoseconds, `automatic` or no_limit; 0 only with `literal`
    Since since = Since::end;
    Moment pass;                            // start of the pass this request belongs to; all 0: now
    Deadline wait = Deadline::none();       // for a busy atom; not for one that was run too recently
    bool queue = false;                     // wait in order of arrival (queue.h)
    // With others that ask so. Such a run is not recorded as a run of the atom, and such a request ends nobody.
    bool shared = false;
    LearnBounds bounds;
    std::int64_t interval_hint = 0;
    KillGrace grace;
    int max_kills = 3;                      // in a row within an hour; then busy, "an operator is needed"
    unsigned mode = 0600;                   // of a new lock file
    bool literal = false;                   // the paper's own arithmetic, for comparison (adaptive_rule.h)
    bool log = true;
};

enum class Denied : std::uint8_t {
    no,             // granted
    busy,
    too_soon,
    not_permitted,  // expired, and its owner is somebody else's
    own_ancestor,   // expired, and its owner is the requester or an ancestor
    unkillable,     // expired, and does not die
    elsewhere,      // expired, and its owner runs on another host or in another pid namespace
    giving_up,      // max_kills
    failed,         // the lock itself failed: see status
};
const char *denied_word(Denied denied);  // "busy", "too-soon", "not-permitted", ...

class AdaptiveLock;

struct Answer {
    Denied denied = Denied::failed;
    Ruling ruling;
    Owner holder;             // who has it (busy and the like) or had it last (too_soon)
    Status status;            // of `failed`
    std::string text;         // one line for people, names the holder; empty when granted without remark
    bool took_over = false;   // granted by ending somebody
    bool after_crash = false; // granted, and the holder before died without a word
};

// A granted lock. Moves; the destructor releases it as `done`, but in the process that took it only: a forked
// child has a copy, and may release it by word.
class AdaptiveLock {
public:
    AdaptiveLock() = default;
    AdaptiveLock(AdaptiveLock &&) noexcept;
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
