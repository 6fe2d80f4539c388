#pragma once
// The request for an adaptive lock, and the answer.
#include <cstdint>
#include <string>

#include "locks/adaptive_rule.h"
#include "locks/kill_carefully.h"
#include "locks/learn.h"
#include "locks/files/lock_file.h"

namespace dcs::locks {

constexpr std::int64_t automatic = -1;  // a limit that is learned

struct LockRequest {
    Place place;
    std::int64_t if_elapsed = 0;           // nanoseconds, or `automatic`
    std::int64_t expire_after = no_limit;  // nanoseconds, `automatic` or no_limit; 0 only with `literal`
    Since since = Since::end;
    Moment pass;                       // start of the pass this request belongs to; all 0: now
    Deadline wait = Deadline::none();  // for a busy atom; not for one that was run too recently
    bool queue = false;                // wait in order of arrival (queue.h)
    // Shared with other such requests. Not recorded as a run of the atom; ends no holder.
    bool shared = false;
    LearnBounds bounds;
    std::int64_t interval_hint = 0;
    KillGrace grace;
    int max_kills = 3;     // holders ended in a row within an hour; then "an operator is needed"
    unsigned mode = 0600;  // of a new lock file
    bool literal = false;  // the paper's own arithmetic, for comparison (adaptive_rule.h)
    bool log = true;
};

enum class Denied : std::uint8_t {
    no,  // granted
    busy,
    too_soon,
    not_permitted,  // expired, and its owner is another user's process
    own_ancestor,   // expired, and its owner is the requester or an ancestor of it
    unkillable,     // expired, and does not end
    elsewhere,      // expired, and its owner runs on another host or in another pid namespace
    giving_up,      // max_kills
    failed,         // the lock itself failed: see status
};
const char *denied_word(Denied denied);  // "busy", "too-soon", "not-permitted", ...

struct Answer {
    Denied denied = Denied::failed;
    Ruling ruling;
    Owner holder;              // the present holder (busy and the like), or the last one (too_soon)
    Status status;             // of `failed`
    std::string text;          // one line for people, names the holder; empty when granted without a remark
    bool took_over = false;    // granted by ending an expired holder
    bool after_crash = false;  // granted, and the previous holder died without releasing the lock
};

}  // namespace dcs::locks
