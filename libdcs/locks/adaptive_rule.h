#pragma once
// GetLock's decision (the paper's Figure 3) without any file: what the record says and what is asked for give the
// verdict. Whether the atom is held is an argument, because only the kernel knows it.
#include <cstdint>

#include "locks/record.h"

namespace dcs::locks {

enum class Since : std::uint8_t { end, start };  // elapsed time counts from the end or the start of the last run

struct Asked {
    std::int64_t if_elapsed = 0;          // nanoseconds; 0: no guard against spam
    std::int64_t expire_after = no_limit; // nanoseconds; 0 is refused before it comes here
    Since since = Since::end;
    Moment now;                           // the paper's parameter: of the request, or of the start of its pass
    Moment clock;                         // the clocks at this instant, never before `now`
    double slack = 0.02;                  // a cron job that comes a little early is not too early:
    std::int64_t slack_max = 30'000'000'000;  // at most this
    bool literal = false;                 // the paper's arithmetic: whole minutes of wall clock, end stamps, no slack
};

enum class Verdict : std::uint8_t { take, busy, too_soon, expired };

struct Ruling {
    Verdict verdict = Verdict::take;
    std::int64_t age = 0;       // of the holder (busy, expired)
    std::int64_t elapsed = 0;   // since the last run (take, too_soon); -1: there was none
    std::int64_t again_in = 0;  // busy: until it expires (no_limit: never); too_soon: until it would be taken
    bool clock_stepped = false; // the last stamp lay in the future without a reason; taken, to be logged
    bool done_since = false;    // too_soon because it was done after this pass started
};

// `held`: somebody has the kernel lock. Busy is told before too soon, except in literal mode, which does as
// the figure does.
Ruling rule(const World &world, const Record &record, bool held, const Asked &asked);

}  // namespace dcs::locks
