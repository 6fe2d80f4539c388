#pragma once
// The request for an adaptive lock, the rule by which it is decided, and the answer.
#include <cstdint>
#include <string>

#include "locks/files/lock_file.h"
#include "locks/files/record.h"
#include "locks/kill_carefully.h"
#include "locks/learn.h"

namespace dcs::locks {

enum class Since : std::uint8_t { end, start };  // elapsed time counts from the end or the start of the last run

struct Asked {
    std::int64_t if_elapsed = 0;           // nanoseconds; 0: no minimum time between runs
    std::int64_t expire_after = no_limit;  // nanoseconds; the caller has refused 0
    Since since = Since::end;
    Moment now;           // the paper's parameter: of the request, or of the start of its pass
    Moment clock;         // the clocks at this instant, never before `now`
    double slack = 0.02;  // fraction of if_elapsed by which a request may be early (jitter of cron),
    std::int64_t slack_max = 30'000'000'000;  // at most this many nanoseconds
    bool literal = false;  // the paper's arithmetic: whole minutes of wall clock, end stamps, no slack
};

enum class Verdict : std::uint8_t { take, busy, too_soon, expired };

struct Ruling {
    Verdict verdict = Verdict::take;
    std::int64_t age = 0;        // of the holder (busy, expired)
    std::int64_t elapsed = 0;    // since the last run (take, too_soon); -1: there was none
    std::int64_t again_in = 0;   // busy: until it expires (no_limit: never); too_soon: until it would be taken
    bool clock_stepped = false;  // the last stamp lies in the future without a reason; taken, and logged
    bool done_since = false;     // too_soon: the atom was run since the start of this pass
};

// GetLock's decision (the paper's Figure 3), free of I/O: maps the record and the request to a verdict. `held`: another
// holder has the kernel lock, as only the kernel knows. Busy takes precedence over too soon, except in literal mode,
// which follows the order of the figure.
Ruling rule(const World &world, const Record &record, bool held, const Asked &asked);

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
    bool literal = false;  // the paper's own arithmetic, for comparison (rule())
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
