#include "locks/lock_request.h"

#include <algorithm>

#include "locks/files/world.h"

namespace dcs::locks {
namespace {

constexpr std::int64_t minute = 60 * second;

// Times in the record may have any value, so differences saturate.
std::int64_t minus(std::int64_t a, std::int64_t b) {
    std::int64_t difference = 0;
    if (__builtin_sub_overflow(a, b, &difference)) return a < b ? INT64_MIN : INT64_MAX;
    return difference;
}

// An unreadable boot id matches no boot.
bool this_boot(const World &world, const BootId &boot) { return boot == world.boot && boot != BootId{}; }

// The run that counts for ifelapsed. `comparable`: its boot clock is of the present boot.
struct Stamp {
    Moment at;
    bool there = false, comparable = false;
};

Stamp last_run(const World &world, const Record &record, bool held, const Asked &asked) {
    Stamp stamp;
    if (held && asked.since == Since::start) {  // the present run is the last that started
        stamp.at = record.started;
        stamp.comparable = this_boot(world, record.started_boot);
    } else {
        stamp.at = asked.since == Since::start ? record.last_start : record.ended;
        stamp.comparable = this_boot(world, record.ended_boot) && stamp.at.boot != 0;
    }
    stamp.there = stamp.at.wall != 0;
    return stamp;
}

// Whether the last run is too recent. Sets all of `ruling` but the verdict.
bool too_early(const Stamp &last, const Asked &asked, Ruling &ruling) {
    if (!last.there) {
        ruling.elapsed = -1;
        return false;
    }
    const std::int64_t at = last.comparable ? last.at.boot : last.at.wall;
    const std::int64_t elapsed = minus(last.comparable ? asked.now.boot : asked.now.wall, at);
    ruling.elapsed = std::max<std::int64_t>(elapsed, 0);
    if (asked.if_elapsed == no_limit) {
        ruling.again_in = no_limit;
        return true;
    }
    if (elapsed < 0 && at > (last.comparable ? asked.clock.boot : asked.clock.wall)) {
        ruling.clock_stepped = true;
        return false;
    }
    const auto slack = static_cast<std::int64_t>(static_cast<double>(asked.if_elapsed) * asked.slack);
    const std::int64_t least = asked.if_elapsed - std::min(slack, asked.slack_max);
    // A negative elapsed time: the run ended after this pass began. Without ifelapsed that is no obstacle.
    if (asked.if_elapsed <= 0 || elapsed >= least) return false;
    ruling.done_since = elapsed < 0;
    ruling.again_in = minus(least, elapsed);
    return true;
}

// Figure 3 in whole minutes with C's division, which truncates towards 0.
Ruling literal_rule(const Record &record, bool held, const Asked &asked) {
    const auto minutes_since = [&](const Moment &then) { return (asked.now.wall / second - then.wall / second) / 60; };
    const auto minutes = [](std::int64_t limit) { return limit == no_limit ? no_limit : limit / minute; };
    Ruling ruling{.elapsed = record.ended.wall == 0 ? -1 : minutes_since(record.ended) * minute};
    if (record.ended.wall != 0 && minutes_since(record.ended) < minutes(asked.if_elapsed)) {
        ruling.verdict = Verdict::too_soon;
        ruling.again_in = asked.if_elapsed == no_limit ? no_limit : minus(asked.if_elapsed, ruling.elapsed);
        return ruling;
    }
    if (!held) return ruling;
    ruling.age = minutes_since(record.started) * minute;
    ruling.verdict = minutes_since(record.started) >= minutes(asked.expire_after) ? Verdict::expired : Verdict::busy;
    if (ruling.verdict == Verdict::busy)
        ruling.again_in = asked.expire_after == no_limit ? no_limit : minus(asked.expire_after, ruling.age);
    return ruling;
}

// Busy takes precedence. An expired run is ended only for a requester that would then be granted the lock: with elapsed
// times since the start, that keeps the paper's "true value" of ExpireAfter from being less than IfElapsed.
Ruling rule_for_held(const World &world, const Record &record, const Asked &asked) {
    Ruling ruling{.verdict = Verdict::busy, .again_in = no_limit};
    if (record.outcome != Outcome::running) return ruling;  // the start is not known
    const std::int64_t age = this_boot(world, record.started_boot) ? minus(asked.now.mono, record.started.mono)
                                                                   : minus(asked.now.wall, record.started.wall);
    ruling.age = std::max<std::int64_t>(age, 0);  // negative: taken after this pass started
    if (asked.expire_after == no_limit) return ruling;
    if (age < asked.expire_after) {
        ruling.again_in = minus(asked.expire_after, age);
        return ruling;
    }
    Ruling elapsed;
    if (too_early(last_run(world, record, true, asked), asked, elapsed)) ruling.again_in = elapsed.again_in;
    else ruling.verdict = Verdict::expired;
    return ruling;
}

}  // namespace

Ruling rule(const World &world, const Record &record, bool held, const Asked &asked) {
    const bool running = held && record.outcome == Outcome::running;
    if (asked.literal && (running || !held)) return literal_rule(record, held, asked);
    if (held) return rule_for_held(world, record, asked);
    Ruling ruling;
    if (too_early(last_run(world, record, false, asked), asked, ruling)) ruling.verdict = Verdict::too_soon;
    if (ruling.verdict == Verdict::take) ruling.again_in = 0;
    return ruling;
}

const char *denied_word(Denied denied) {
    constexpr const char *words[] = {"granted",    "busy",      "too-soon",  "not-permitted", "own-ancestor",
                                     "unkillable", "elsewhere", "giving-up", "failed"};
    static_assert(std::size(words) == static_cast<std::size_t>(Denied::failed) + 1);
    return words[static_cast<std::size_t>(denied)];
}

}  // namespace dcs::locks
