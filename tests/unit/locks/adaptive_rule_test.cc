#include "locks/lock_request.h"

#include "stepped_world.h"
#include "support/catch.h"

using namespace dcs::locks;
using scratch::hour;
using scratch::minute;
using scratch::second;

namespace {

// A host whose clocks say what the test says.
struct Host : World {
    Moment clocks{1'000'000 * second, 5000 * second, 6000 * second};
    Host() {
        boot[3] = 7;
        host = "dax";
    }
    Moment now() const override { return clocks; }
    void later(std::int64_t by) { clocks = {clocks.wall + by, clocks.mono + by, clocks.boot + by}; }
    void reboot() {
        ++boot[3];
        clocks.mono = clocks.boot = 10 * second;
    }
};

Record ended(const Host &host, Moment started, Moment at) {
    Record r;
    r.outcome = Outcome::done;
    r.started = r.last_start = started;
    r.ended = at;
    r.started_boot = r.ended_boot = host.boot;
    return r;
}

Record running(const Host &host) {
    Record r;
    r.outcome = Outcome::running;
    r.started = host.now();
    r.started_boot = host.boot;
    return r;
}

Asked asked(const Host &host, std::int64_t if_elapsed, std::int64_t expire_after = no_limit) {
    Asked a;
    a.if_elapsed = if_elapsed;
    a.expire_after = expire_after;
    a.now = a.clock = host.now();
    return a;
}

Moment before(Moment m, std::int64_t by) { return {m.wall - by, m.mono - by, m.boot - by}; }

}  // namespace

TEST_CASE("P16 the first request ever is granted") {
    Host host;
    for (const std::int64_t limit : {std::int64_t{0}, 5 * second, hour, no_limit}) {
        Asked a = asked(host, limit);
        CHECK(rule(host, Record{}, false, a).verdict == Verdict::take);
        CHECK(rule(host, Record{}, false, a).elapsed == -1);
        a.literal = true;
        CHECK(rule(host, Record{}, false, a).verdict == Verdict::take);
    }
}

TEST_CASE("P15 a cron job that comes a little early is not too early") {
    Host host;
    struct {
        std::int64_t if_elapsed, elapsed;
        bool taken;
    } const lines[] = {
        {hour, hour, true},
        {hour, hour - 20 * second, true},
        {hour, hour - 29 * second, true},
        {hour, hour - 31 * second, false},  // at most 30 s
        {minute, 59 * second, true},
        {minute, 58 * second, false},  // 2 %: 1.2 s
        {0, 0, true},
        {1, 0, false},
    };
    for (const auto &line : lines) {
        INFO(line.if_elapsed << " " << line.elapsed);
        const Record r = ended(host, before(host.now(), line.elapsed + second), before(host.now(), line.elapsed));
        const Ruling ruling = rule(host, r, false, asked(host, line.if_elapsed));
        CHECK((ruling.verdict == Verdict::take) == line.taken);
        CHECK(ruling.elapsed == line.elapsed);
        if (line.taken) continue;
        CHECK(ruling.verdict == Verdict::too_soon);
        host.later(ruling.again_in);
        CHECK(rule(host, r, false, asked(host, line.if_elapsed)).verdict == Verdict::take);
        host.later(-1);
        CHECK(rule(host, r, false, asked(host, line.if_elapsed)).verdict == Verdict::too_soon);
        host.later(1 - ruling.again_in);
    }
}

TEST_CASE("P14 elapsed counts from the end, or from the start if asked so") {
    Host host;
    const Record r = ended(host, before(host.now(), 20 * minute), before(host.now(), 5 * minute));
    Asked a = asked(host, 15 * minute);
    CHECK(rule(host, r, false, a).verdict == Verdict::too_soon);
    CHECK(rule(host, r, false, a).elapsed == 5 * minute);
    a.since = Since::start;
    CHECK(rule(host, r, false, a).verdict == Verdict::take);
    CHECK(rule(host, r, false, a).elapsed == 20 * minute);
}

TEST_CASE("P14 since the start, a holder's true limit is never less than ifelapsed") {
    Host host;
    const Record r = running(host);
    host.later(6 * second);
    Asked a = asked(host, 10 * second, 5 * second);
    CHECK(rule(host, r, true, a).verdict == Verdict::expired);  // since the end of the run before: there was none
    a.since = Since::start;
    const Ruling ruling = rule(host, r, true, a);
    CHECK(ruling.verdict == Verdict::busy);
    CHECK(ruling.again_in > 3 * second);
    host.later(ruling.again_in);
    a.now = a.clock = host.now();
    CHECK(rule(host, r, true, a).verdict == Verdict::expired);
}

TEST_CASE("busy is told before too soon") {
    Host host;
    Record r = running(host);
    r.ended = before(host.now(), second);  // the run before
    r.ended_boot = host.boot;
    host.later(10 * second);
    const Ruling ruling = rule(host, r, true, asked(host, hour, minute));
    CHECK(ruling.verdict == Verdict::busy);
    CHECK(ruling.age == 10 * second);
    CHECK(ruling.again_in == 50 * second);
}

TEST_CASE("P13 a holder expires at its limit and not before") {
    Host host;
    const Record r = running(host);
    host.later(12 * second - 1);
    CHECK(rule(host, r, true, asked(host, 0, 12 * second)).verdict == Verdict::busy);
    CHECK(rule(host, r, true, asked(host, 0, 12 * second)).again_in == 1);
    host.later(1);
    CHECK(rule(host, r, true, asked(host, 0, 12 * second)).verdict == Verdict::expired);
    CHECK(rule(host, r, true, asked(host, 0, no_limit)).verdict == Verdict::busy);
    CHECK(rule(host, r, true, asked(host, 0, no_limit)).again_in == no_limit);
}

TEST_CASE("a holder without a record never expires") {
    Host host;
    for (const Outcome outcome : {Outcome::none, Outcome::done, Outcome::crashed, Outcome::lost}) {
        Record r = running(host);
        r.outcome = outcome;
        host.later(24 * hour);
        CHECK(rule(host, r, true, asked(host, 0, second)).verdict == Verdict::busy);
        Asked a = asked(host, 0, second);
        a.literal = true;
        CHECK(rule(host, r, true, a).verdict == Verdict::busy);
    }
}

TEST_CASE("P17 P21 a run that ended after this pass began was done since") {
    Host host;
    const Moment start = host.now();
    host.later(90 * second);
    const Record r = ended(host, before(host.now(), 10 * second), host.now());
    host.later(30 * second);
    Asked a = asked(host, minute);
    a.now = start;  // the paper's parameter: when this program began
    const Ruling ruling = rule(host, r, false, a);
    CHECK(ruling.verdict == Verdict::too_soon);
    CHECK(ruling.done_since);
    CHECK(ruling.elapsed == 0);
    CHECK_FALSE(ruling.clock_stepped);
    a.if_elapsed = 0;
    CHECK(rule(host, r, false, a).verdict == Verdict::take);  // the paper's division makes this -1 < 0: denied
    a.literal = true;
    CHECK(rule(host, r, false, a).verdict == Verdict::too_soon);
}

TEST_CASE("P21 a holder that came after this pass began has no negative age") {
    Host host;
    const Moment start = host.now();
    host.later(hour);
    const Record r = running(host);
    host.later(minute);
    Asked a = asked(host, 0, 90 * minute);
    a.now = start;
    CHECK(rule(host, r, true, a).verdict == Verdict::busy);
    CHECK(rule(host, r, true, a).age == 0);
    CHECK(rule(host, r, true, a).again_in == 90 * minute + hour);
}

TEST_CASE("P18 a clock that is set back keeps no process out") {
    Host host;
    const std::int64_t year = 365 * 24 * hour;
    const Record r = ended(host, host.now(), host.now());
    host.later(10 * minute);
    host.clocks.wall -= year;  // in the same boot no process looks at the wall
    CHECK(rule(host, r, false, asked(host, 5 * minute)).verdict == Verdict::take);
    CHECK_FALSE(rule(host, r, false, asked(host, 5 * minute)).clock_stepped);
    CHECK(rule(host, r, false, asked(host, 15 * minute)).verdict == Verdict::too_soon);
    host.reboot();
    const Ruling ruling = rule(host, r, false, asked(host, 15 * minute));
    CHECK(ruling.verdict == Verdict::take);
    CHECK(ruling.clock_stepped);
    CHECK(rule(host, r, false, asked(host, no_limit)).verdict == Verdict::too_soon);  // once and never again
}

TEST_CASE("P19 a clock that is set forward expires no process") {
    Host host;
    const Record r = running(host);
    host.later(second);
    host.clocks.wall += 24 * hour;
    CHECK(rule(host, r, true, asked(host, 0, hour)).verdict == Verdict::busy);
    CHECK(rule(host, r, true, asked(host, 0, hour)).age == second);
}

TEST_CASE("P20 a suspended machine expires no process, and time elapses in it") {
    Host host;
    const Record holder = running(host), last = ended(host, host.now(), host.now());
    host.later(second);
    host.clocks.wall += 3 * hour;
    host.clocks.boot += 3 * hour;
    CHECK(rule(host, holder, true, asked(host, 0, hour)).verdict == Verdict::busy);
    CHECK(rule(host, last, false, asked(host, hour)).verdict == Verdict::take);
}

TEST_CASE("P6 after a reboot elapsed times go by the wall clock") {
    Host host;
    const Record r = ended(host, host.now(), host.now());
    host.reboot();
    host.clocks.wall += 10 * minute;
    CHECK(rule(host, r, false, asked(host, 15 * minute)).verdict == Verdict::too_soon);
    CHECK(rule(host, r, false, asked(host, 15 * minute)).elapsed == 10 * minute);
    CHECK(rule(host, r, false, asked(host, 10 * minute)).verdict == Verdict::take);
    // A start of another boot than the end: its boot clock is not to be compared.
    Record mixed = r;
    mixed.ended_boot = host.boot;
    mixed.ended = host.now();
    mixed.last_start = {host.clocks.wall - hour, 0, 0};
    Asked a = asked(host, 30 * minute);
    a.since = Since::start;
    CHECK(rule(host, mixed, false, a).verdict == Verdict::take);
    CHECK(rule(host, mixed, false, a).elapsed == hour);
}

TEST_CASE("P22 limits below a second are honoured") {
    Host host;
    const Record r = ended(host, host.now(), host.now());
    host.later(second / 2 - second / 50);
    CHECK(rule(host, r, false, asked(host, second / 2)).verdict == Verdict::too_soon);
    host.later(second / 50);
    CHECK(rule(host, r, false, asked(host, second / 2)).verdict == Verdict::take);
}

TEST_CASE("P32 no guard, no expiry and huge values mean what they say") {
    Host host;
    const Record last = ended(host, host.now(), host.now());
    CHECK(rule(host, last, false, asked(host, 0)).verdict == Verdict::take);
    CHECK(rule(host, last, false, asked(host, no_limit)).verdict == Verdict::too_soon);
    CHECK(rule(host, last, false, asked(host, no_limit)).again_in == no_limit);
    CHECK(rule(host, last, false, asked(host, no_limit - 1)).verdict == Verdict::too_soon);
    const Record holder = running(host);
    host.later(1000 * hour);
    CHECK(rule(host, holder, true, asked(host, 0, no_limit)).verdict == Verdict::busy);
    CHECK(rule(host, holder, true, asked(host, 0, no_limit - 1)).verdict == Verdict::busy);
}

TEST_CASE("P32 times that no process can have written do not overflow") {
    Host host;
    for (const std::int64_t t : {INT64_MIN, INT64_MIN + 1, std::int64_t{-1}, INT64_MAX - 1, INT64_MAX}) {
        Record r = ended(host, {t, t, t}, {t, t, t});
        for (const bool held : {false, true})
            for (const bool literal : {false, true}) {
                r.outcome = held ? Outcome::running : Outcome::done;
                for (const BootId &boot : {host.boot, BootId{}}) {
                    r.started_boot = r.ended_boot = boot;
                    Asked a = asked(host, hour, hour);
                    a.literal = literal;
                    const Verdict verdict = rule(host, r, held, a).verdict;
                    CHECK((held ? verdict != Verdict::take : verdict != Verdict::expired));
                }
            }
    }
}

TEST_CASE("an unknown boot is no boot of ours") {
    Host host;
    host.boot = BootId{};
    const Record r = ended(host, host.now(), host.now());
    host.clocks.wall += hour;
    CHECK(rule(host, r, false, asked(host, minute)).verdict == Verdict::take);
    host.clocks.wall -= hour - second;
    CHECK(rule(host, r, false, asked(host, minute)).verdict == Verdict::too_soon);
}

// --- the paper's own arithmetic ---------------------------------------------------------------------

namespace {
Ruling literal(const Host &host, const Record &r, bool held, std::int64_t if_elapsed, std::int64_t expire_after) {
    Asked a = asked(host, if_elapsed * minute, expire_after == no_limit ? no_limit : expire_after * minute);
    if (if_elapsed == no_limit) a.if_elapsed = no_limit;
    a.literal = true;
    return rule(host, r, held, a);
}
}  // namespace

TEST_CASE("P15 P17 literally, minutes are whole and cut") {
    Host host;
    host.clocks.wall -= host.clocks.wall % minute;
    const Record r = ended(host, host.now(), host.now());
    host.later(119 * second);
    CHECK(literal(host, r, false, 1, no_limit).verdict == Verdict::take);
    CHECK(literal(host, r, false, 2, no_limit).verdict == Verdict::too_soon);  // 119 s are one minute
    host.later(second);
    CHECK(literal(host, r, false, 2, no_limit).verdict == Verdict::take);
    host.later(-120 * second - 59 * second);
    CHECK(literal(host, r, false, 0, no_limit).verdict == Verdict::take);  // -59 s are 0 minutes
    host.later(-31 * second);
    CHECK(literal(host, r, false, 0, no_limit).verdict == Verdict::too_soon);  // -90 s are -1
}

TEST_CASE("literally, too soon is told before busy, as in Figure 3") {
    Host host;
    Record r = running(host);
    r.ended = before(host.now(), minute);
    r.ended_boot = host.boot;
    host.later(minute);
    CHECK(literal(host, r, true, 15, 90).verdict == Verdict::too_soon);
    CHECK(literal(host, r, true, 2, 90).verdict == Verdict::busy);
    CHECK(literal(host, r, true, 2, 1).verdict == Verdict::expired);
    CHECK(literal(host, r, true, 3, 1).verdict == Verdict::too_soon);  // so no process is ended
}

TEST_CASE("Table 2 literally: ifelapsed of T, 0 and infinity") {
    Host host;
    const Record r = ended(host, host.now(), host.now());
    CHECK(literal(host, r, false, 15, 90).verdict == Verdict::too_soon);  // before T minutes
    CHECK(literal(host, r, false, 0, 90).verdict == Verdict::take);       // impotent, spamming possible
    host.later(15 * minute);
    CHECK(literal(host, r, false, 15, 90).verdict == Verdict::take);
    host.later(10'000 * hour);
    CHECK(literal(host, r, false, no_limit, 90).verdict == Verdict::too_soon);  // run atoms once only
    CHECK(literal(host, Record{}, false, no_limit, 90).verdict == Verdict::take);
}

TEST_CASE("Table 3 literally: expireafter of T, 0 and infinity") {
    Host host;
    const Record r = running(host);
    CHECK(literal(host, r, true, 0, 0).verdict == Verdict::expired);  // impotent, nothing is locked
    CHECK(literal(host, r, true, 0, 90).verdict == Verdict::busy);
    host.later(90 * minute);
    CHECK(literal(host, r, true, 0, 90).verdict == Verdict::expired);  // interruptible after T minutes
    host.later(10'000 * hour);
    CHECK(literal(host, r, true, 0, no_limit).verdict == Verdict::busy);  // never expire
}

TEST_CASE("the recommended values for an hourly job: 15 and 90 minutes") {
    Host host;
    Record r = ended(host, before(host.now(), 10 * minute), host.now());  // ran from :00 to :10
    const auto ask = [&](bool held) { return rule(host, r, held, asked(host, 15 * minute, 90 * minute)).verdict; };
    host.later(14 * minute);
    CHECK(ask(false) == Verdict::too_soon);  // by hand at :24
    host.later(2 * minute);
    CHECK(ask(false) == Verdict::take);  // by hand at :26
    host.later(34 * minute);
    CHECK(ask(false) == Verdict::take);  // the next hour
    r = running(host);
    host.later(hour);
    CHECK(ask(true) == Verdict::busy);  // one overrun is allowed
    host.later(hour);
    CHECK(ask(true) == Verdict::expired);  // and ended two hours after its start
}
