#include "locks/learn.h"

#include "stepped_world.h"
#include "support/catch.h"

using namespace dcs::locks;
using scratch::day;
using scratch::hour;
using scratch::minute;
using scratch::s;

namespace {

constexpr std::int64_t epoch = 1'000'000'000 * s;

// Hourly runs, the last one at `epoch`.
std::vector<Sample> runs(std::size_t n, std::int64_t runtime, Outcome outcome = Outcome::done) {
    std::vector<Sample> samples(n);
    for (std::size_t i = 0; i < n; ++i) {
        samples[i].wall = epoch - static_cast<std::int64_t>(n - 1 - i) * hour;
        samples[i].runtime = runtime;
        samples[i].cpu = s;
        samples[i].outcome = outcome;
    }
    return samples;
}

Sample ended(std::int64_t runtime, bool progressing) {
    Sample sample;
    sample.wall = epoch + hour;
    sample.runtime = runtime;
    sample.outcome = Outcome::expired;
    sample.progressing = progressing;
    return sample;
}

std::vector<Sample> with(std::vector<Sample> samples, const std::vector<Sample> &more) {
    samples.insert(samples.end(), more.begin(), more.end());
    for (std::size_t i = 0; i < samples.size(); ++i)
        samples[i].wall = epoch - static_cast<std::int64_t>(samples.size() - 1 - i) * hour;
    return samples;
}

// `n` refusals, `apart` from each other, the first `after` the last run.
std::vector<Denial> refusals(std::size_t n, std::int64_t after, std::int64_t apart, bool too_soon = true) {
    std::vector<Denial> denials(n);
    for (std::size_t i = 0; i < n; ++i) {
        denials[i].wall = epoch + after + static_cast<std::int64_t>(i) * apart;
        denials[i].too_soon = too_soon;
        denials[i].uid = 1000;
        denials[i].parent = 4711;
        denials[i].command = "loop.sh";
    }
    return denials;
}

Learned learned(const std::vector<Sample> &samples, std::int64_t if_elapsed = 0) {
    return learn(samples, {}, LearnBounds(), 0, if_elapsed, -1);
}

}  // namespace

TEST_CASE("P13 the first limit is ten minutes or one and a half intervals") {
    CHECK(learn({}, {}, LearnBounds(), 0, 0, -1).soft == 10 * minute);
    CHECK(learn({}, {}, LearnBounds(), hour, 0, -1).soft == 90 * minute);
    CHECK(learn({}, {}, LearnBounds(), hour, 0, -1).hard == 6 * hour);
    CHECK(learn({}, {}, LearnBounds(), 0, 0, -1).interval == 0);
}

TEST_CASE("the limit is the longest run and a margin that shrinks with evidence") {
    CHECK(learned(runs(1, minute)).soft == 195 * s);
    CHECK(learned(runs(4, minute)).soft == 135 * s);
    CHECK(learned(runs(100, minute)).soft == 87 * s);
    CHECK(learned(runs(100, minute)).hard == 4 * 87 * s);
    auto one_long = runs(100, minute);
    one_long[50].runtime = 5 * minute;
    CHECK(learned(one_long).soft == 5 * 87 * s);
    CHECK(learned(one_long).longest == 5 * minute);
}

TEST_CASE("only the last hundred runs count") {
    auto samples = with(runs(1, hour), runs(100, minute));
    CHECK(learned(samples).longest == minute);
    CHECK(learned(samples).runs == 100);
    samples.pop_back();
    CHECK(learned(samples).longest == hour);
}

TEST_CASE("a run that got on when it was ended counts as one that long, a silent one doubles the limit") {
    const auto base = runs(100, minute);
    CHECK(learned(with(base, {ended(4 * minute, true)})).soft == 4 * 87 * s);
    CHECK(learned(with(base, {ended(4 * minute, false)})).soft / s == 2 * 87);
    CHECK(learned(with(base, {ended(minute, false), ended(minute, false)})).soft / s >= 4 * 87);
    CHECK(learned(with(base, {ended(minute, false)})).killed == 1);
    const auto after_success = with(with(base, {ended(minute, false), ended(minute, false)}), runs(1, minute));
    CHECK(learned(after_success).soft / s < 89);
}

TEST_CASE("P13 a limit below every runtime grows until the job completes") {
    const std::int64_t runtime = 5 * 10 * minute;
    for (const bool progressing : {true, false}) {
        std::vector<Sample> samples;
        int kills = 0;
        for (std::int64_t limit = 0;; ++kills) {
            const Learned now = learn(samples, {}, LearnBounds(), minute, 0, -1);
            limit = progressing ? now.hard : now.soft;
            if (limit >= runtime) break;
            samples = with(samples, {ended(limit, progressing)});
            REQUIRE(kills < 10);
        }
        CHECK(kills == (progressing ? 1 : 3));
    }
}

TEST_CASE("P13 a job that never completed is starving, also when it fails at once in between") {
    CHECK_FALSE(learned(with({}, {ended(minute, false)})).starving);
    CHECK(learned(with({}, {ended(minute, false), ended(minute, true)})).starving);
    CHECK(learned(with(runs(3, s, Outcome::failed), {ended(minute, false), ended(minute, false)})).starving);
    CHECK_FALSE(learned(with(runs(1, minute), {ended(minute, false), ended(minute, false)})).starving);
    CHECK(learned(with({}, {ended(minute, false), ended(minute, true)})).soft >= 10 * minute);
}

TEST_CASE("runs that failed at once, crashed or were lost are no evidence") {
    CHECK(learned(runs(50, s, Outcome::failed)).soft == 90 * minute);
    CHECK(learned(runs(50, 100 * hour, Outcome::crashed)).longest == 0);
    CHECK(learned(runs(50, 100 * hour, Outcome::lost)).longest == 0);
    CHECK(learned(with(runs(100, minute), runs(1, 3 * minute, Outcome::failed))).longest == 3 * minute);
    CHECK(learned(with(runs(1, minute), runs(99, s, Outcome::failed))).soft == 195 * s);  // as after one run
}

TEST_CASE("P32 what is learned keeps to the bounds of the user") {
    LearnBounds bounds;
    CHECK(learned(runs(100, s / 10)).soft == 10 * s);
    CHECK(learned(runs(100, 40 * hour)).soft == 24 * hour);
    CHECK(learned(runs(100, 40 * hour)).hard == 24 * hour);
    bounds.expire_max = 2 * minute;
    CHECK(learn(runs(100, minute), {}, bounds, 0, 0, -1).hard == 2 * minute);
    bounds.expire_min = 5 * minute;  // above the maximum: the maximum is the stronger
    CHECK(learn(runs(100, minute), {}, bounds, 0, 0, -1).soft == 2 * minute);
    std::vector<Sample> many(64, ended(minute, false));
    CHECK(learned(many).soft == 24 * hour);
    auto endless = runs(3, INT64_MAX);
    CHECK(learned(endless).soft == 24 * hour);
}

TEST_CASE("ExpireAfter is above IfElapsed, whichever of them is given") {
    CHECK(learned(runs(100, minute), 15 * minute).soft == 15 * minute + s);
    CHECK(learned(runs(100, minute), 48 * hour).soft == 24 * hour);  // the bound is stronger
    const Learned both = learned(runs(100, minute), -1);
    CHECK(both.if_elapsed == 15 * minute);
    CHECK(both.soft > both.if_elapsed);
    const Learned given = learn(runs(100, minute), {}, LearnBounds(), 0, -1, 5 * minute);
    CHECK(given.soft == 5 * minute);
    CHECK(given.hard == 5 * minute);
    CHECK(given.if_elapsed < 5 * minute);
    CHECK(learn(runs(100, minute), {}, LearnBounds(), 0, -1, no_limit).if_elapsed == 15 * minute);
}

TEST_CASE("IfElapsed is a quarter of the interval, or more for a job that would use too much of the time") {
    CHECK(learned(runs(100, minute), -1).interval == hour);
    CHECK(learned(runs(100, minute), -1).if_elapsed == 15 * minute);
    CHECK(learned(runs(100, 40 * minute), -1).if_elapsed == 40 * minute);
    CHECK(learned(runs(100, 55 * minute), -1).if_elapsed == 48 * minute);  // at most 0.8 of the interval
    LearnBounds bounds;
    bounds.duty = 0.1;
    CHECK(learn(runs(100, 2 * minute), {}, bounds, 0, -1, -1).if_elapsed == 18 * minute);
    bounds = {};
    bounds.elapsed_max = 5 * minute;
    CHECK(learn(runs(100, minute), {}, bounds, 0, -1, -1).if_elapsed == 5 * minute);
    CHECK(learn({}, {}, LearnBounds(), 0, -1, -1).if_elapsed == 30 * s);
    CHECK(learn(runs(2, minute), {}, LearnBounds(), day, -1, -1).if_elapsed == 6 * hour);  // the hint, for the first
    CHECK(learn(runs(100, minute), {}, LearnBounds(), day, -1, -1).if_elapsed == 15 * minute);
}

TEST_CASE("the interval is of requests, not of runs, counts a burst as one and follows a new schedule") {
    auto samples = runs(100, minute);
    for (Sample &sample : samples) sample.waited = 10 * minute;  // granted late, asked every hour
    samples.back().waited = 0;
    CHECK(learned(samples, -1).interval == hour);
    CHECK(learn(runs(100, minute), refusals(64, minute, 5 * s), LearnBounds(), 0, -1, -1).interval == hour);
    const auto every_ten = refusals(20, 10 * minute, 10 * minute);
    CHECK(learn(runs(100, minute), every_ten, LearnBounds(), 0, -1, -1).interval == 10 * minute);
}

TEST_CASE("a burst of refusals doubles IfElapsed, an interval of quiet halves it") {
    const auto at = [](std::size_t n, std::int64_t apart, std::int64_t quiet) {
        auto samples = runs(100, minute);
        Sample later = samples.back();
        later.wall = epoch + minute + static_cast<std::int64_t>(n) * apart + quiet;
        samples.push_back(later);
        return learn(samples, refusals(n, minute, apart), LearnBounds(), 0, -1, -1);
    };
    CHECK(at(10, s, 0).burst_factor == 1);
    CHECK(at(11, s, 0).burst_factor == 2);
    CHECK(at(11, s, 0).if_elapsed == 30 * minute);
    CHECK(at(22, s, 0).burst_factor == 4);
    CHECK(at(22, s, 0).if_elapsed == 48 * minute);  // 0.8 of the interval
    CHECK(at(22, s, hour).burst_factor == 2);
    CHECK(at(22, s, 3 * hour).burst_factor == 1);
    CHECK(at(30, 2 * minute, 0).burst_factor == 1);  // not ten within a quarter of an hour
    const auto busy = refusals(60, minute, s, false);
    CHECK(learn(runs(100, minute), busy, LearnBounds(), 0, -1, -1).burst_factor == 1);
    CHECK(learn(runs(100, minute), refusals(60, minute, s), LearnBounds(), 0, 5 * minute, -1).if_elapsed == 5 * minute);
}

TEST_CASE("who asks most often is named as spammer") {
    auto denials = refusals(20, minute, s);
    for (std::size_t i = 0; i < 3; ++i) denials[i].command = "innocent";
    const Learned spam = learn(runs(100, minute), denials, LearnBounds(), 0, -1, -1);
    CHECK(spam.spammed);
    CHECK(spam.spammer == "uid 1000, loop.sh, parent 4711");
    CHECK_FALSE(learn(runs(100, minute), refusals(10, minute, s), LearnBounds(), 0, -1, -1).spammed);
    CHECK(learn(runs(100, minute), refusals(11, minute, s, false), LearnBounds(), 0, -1, -1).spammed);
    auto samples = runs(100, minute);
    samples.back().wall += 3 * day;  // long ago
    CHECK_FALSE(learn(samples, denials, LearnBounds(), 0, -1, -1).spammed);
}

TEST_CASE("P18 stamps that stepped back or far ahead leave sane limits") {
    auto samples = runs(100, minute);
    samples[40].wall += 365 * day;
    samples[70].wall = 0;
    const Learned stepped = learned(samples, -1);
    CHECK(stepped.interval == hour);
    CHECK(stepped.if_elapsed == 15 * minute);
}

TEST_CASE("more evidence and shorter tails predict fewer false kills") {
    CHECK(learned({}).false_kills == Approx(1000));
    CHECK(learned(runs(1, minute)).false_kills > learned(runs(10, minute)).false_kills);
    auto steady = runs(100, minute), wild = steady;
    for (std::size_t i = 0; i < 100; ++i) {
        steady[i].runtime += static_cast<std::int64_t>(i) * s / 10;
        wild[i].runtime = minute * 100 / static_cast<std::int64_t>(100 - i);
    }
    CHECK(learned(steady).false_kills < 0.001);
    CHECK(learned(wild).false_kills > 1);
    CHECK(learned(wild).false_kills < 20);
    auto silent = wild;
    for (Sample &sample : silent) sample.cpu = 0;
    CHECK(learned(silent).false_kills > learned(wild).false_kills);  // the soft limit is all they get
}
