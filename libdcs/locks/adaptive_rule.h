#pragma once
// GetLock's decision (the paper's Figure 3), free of I/O: maps the record and the request to a verdict. Whether the
// atom is held is an argument, because only the kernel knows it.
#include <cstdint>

#include "locks/files/record.h"

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

// `held`: another holder has the kernel lock. Busy takes precedence over too soon, except in literal mode, which
// follows the order of the figure.
Ruling rule(const World &world, const Record &record, bool held, const Asked &asked);

}  // namespace dcs::locks
