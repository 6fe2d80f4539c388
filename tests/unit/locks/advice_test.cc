#include "locks/learn.h"

#include "stepped_world.h"
#include "support/catch.h"

using namespace dcs::locks;
using scratch::hour;
using scratch::minute;
using scratch::s;
using Catch::Matchers::Contains;

namespace {

// Hourly runs of a minute, each `every`-th of half an hour.
std::vector<Sample> peaked(std::size_t n, std::size_t every) {
    std::vector<Sample> samples(n);
    for (std::size_t i = 0; i < n; ++i) {
        samples[i].wall = 1'000'000'000 * s + static_cast<std::int64_t>(i) * hour;
        samples[i].runtime = i % every == every - 1 ? 30 * minute : minute + static_cast<std::int64_t>(i) * s / 100;
        samples[i].outcome = Outcome::done;
    }
    return samples;
}

std::string advised(const std::vector<Sample> &samples, const std::vector<Denial> &denials = {}) {
    return advice("edit /etc/motd", samples, denials, LearnBounds(), 0);
}

}  // namespace

TEST_CASE("durations are printed as the command line takes them, never shorter than they are") {
    CHECK(duration_text(0) == "0s");
    CHECK(duration_text(1) == "0.1s");
    CHECK(duration_text(90 * s) == "90s");
    CHECK(duration_text(15 * minute) == "15m");
    CHECK(duration_text(150 * minute) == "2.5h");
    CHECK(duration_text(15 * minute + s) == "15.1m");
    CHECK(duration_text(24 * hour) == "24h");
    CHECK(duration_text(48 * hour) == "2d");
    CHECK(duration_text(no_limit) == "never");
}

TEST_CASE("advice gives the values and the evidence") {
    const std::string text = advised(peaked(100, 1000));
    CHECK_THAT(text, Contains("edit /etc/motd\n"));
    CHECK_THAT(text, Contains("ifelapsed     15m\n"));
    CHECK_THAT(text, Contains("100 completed runs, the longest that counts 61s; 0 runs ended at the limit; asked for "
                              "every 60m"));
    CHECK_THAT(text, Contains("of 1000 good runs ended by mistake"));
    CHECK_THAT(text, Contains("dcs_lock -i 15m -e 15.1m"));
    CHECK_THAT(text, !Contains("peaks"));
    CHECK_THAT(text, !Contains("spam"));
    CHECK_THAT(text, !Contains("starving"));
    CHECK_THAT(advised({}), Contains("no run is recorded yet") && !Contains("predicted"));
}

TEST_CASE("runs that are long at regular times are advised an operand of their own") {
    const Peaks peaks = peaks_of(peaked(96, 24));
    CHECK(peaks.runs == 4);
    CHECK(peaks.every == 24 * hour);
    CHECK(peaks.ratio == Approx(29).margin(1));
    CHECK(peaks.rest.size() == 92);
    CHECK_THAT(advised(peaked(96, 24)), Contains("4 runs, one every 24h, took at least 30 times as long") &&
                                            Contains("an operand of their own"));
    CHECK(peaks_of(peaked(40, 24)).runs == 0);  // seen once
    CHECK(peaks_of(peaked(96, 3)).runs == 0);   // a third of the runs: that is how long it takes
    auto irregular = peaked(96, 24);
    std::swap(irregular[23].runtime, irregular[2].runtime);
    CHECK(peaks_of(irregular).runs == 0);
    CHECK(peaks_of({}).runs == 0);
}

TEST_CASE("advice names starving jobs and who spams") {
    std::vector<Sample> killed(3);
    for (Sample &sample : killed) sample.outcome = Outcome::expired;
    CHECK_THAT(advised(killed), Contains("ended 3 times and has never completed"));
    std::vector<Denial> denials(20);
    for (Denial &denial : denials) {
        denial.wall = peaked(100, 1000).back().wall + minute;
        denial.too_soon = true;
        denial.command = "loop.sh";
    }
    CHECK_THAT(advised(peaked(100, 1000), denials),
               Contains("most of them from uid 0, loop.sh, parent 0") && Contains("a factor of up to 2"));
}
