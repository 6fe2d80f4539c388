// Nothing is removed for its age by a clock that was put forward.
#include <algorithm>

#include "scheduler/turn/age_clock.h"
#include "support/about.h"
#include "support/catch.h"
#include "unit/scheduler_turn/pool.h"

namespace dcs::test {
namespace {

using turn::AgeClock;
using Verdict = AgeClock::Verdict;

constexpr std::int64_t day_s = 24 * 3600, year_s = 365 * day_s;

struct Closed : Pool {
    Closed() : Pool({host("h1", 2)}) {
        const ConnId control = this->control("ann", "prog");
        ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::open, false});
        ask<wire::Done>(control, wire::CloseSession{"ann", 1, 1});
        policy.session_age_s = 30 * static_cast<std::int32_t>(day_s);
        turn->take_policy(policy);
        pump();
    }
    void serve_for(std::int64_t s) {
        constexpr std::int64_t step = 600;
        for (std::int64_t past = 0; past < s; past += step) {
            outside->clock = outside->clock + seconds(step);
            outside->wall += step;
            turn->tidy();
            pump();
        }
    }
    void start_at(std::int64_t wall) {
        wall_at_start = wall;
        restart();
        turn->take_policy(policy);
        pump();
    }
    bool there() { return turn->state().session({"ann", 1}) != nullptr; }
    bool told() const {
        for (const std::string &line : outside->lines)
            if (line.find("put forward by about 365 days") != std::string::npos) return true;
        return false;
    }
    core::Policy policy;
};

}  // namespace

TEST_CASE("a clock that is put forward while the scheduler runs removes no session for a day") {
    Closed pool;
    pool.serve_for(2 * day_s);
    CHECK(pool.there());
    CHECK_FALSE(pool.told());
    pool.outside->wall += year_s;
    pool.serve_for(day_s - 120);
    CHECK(pool.there());
    CHECK(pool.told());
    pool.outside->wall -= year_s;
    pool.serve_for(2 * day_s);
    CHECK(pool.there());
    pool.serve_for(27 * day_s);  // by a clock that is right
    CHECK_FALSE(pool.there());
}

TEST_CASE("a start with a clock that is a year ahead removes no session for a day, nor does the next start at once") {
    Closed pool;
    const std::int64_t right = pool.outside->wall;
    pool.start_at(right + year_s);
    pool.serve_for(3 * 3600);
    CHECK(pool.there());
    CHECK(pool.told());
    const ConnId control = pool.control("ann", "prog");  // now the latest record is of that year, too
    pool.ask<wire::OpenReply>(control, wire::OpenSession{2, wire::OpenMode::open, false});
    pool.start_at(right + year_s + day_s / 2);
    pool.serve_for(3000);
    CHECK(pool.there());
    pool.start_at(right + 60);
    pool.serve_for(2 * day_s);
    CHECK(pool.there());
}

TEST_CASE("sessions that a shorter session_age would remove stay for a day, and doctor counts them") {
    Closed pool;
    const auto row = [&] {
        const ConnId conn = pool.control("ann", "asks");
        for (const wire::ProblemRow &p : pool.ask<wire::DoctorReply>(conn, wire::Doctor{}).problems)
            if (p.entity == "policy session_age") return p.problem;
        return std::string();
    };
    const auto logged = [&](const char *text) {
        return std::any_of(pool.outside->lines.begin(), pool.outside->lines.end(),
                           [&](const std::string &line) { return line.find(text) != std::string::npos; });
    };
    pool.serve_for(2 * day_s);
    CHECK(row().empty());
    pool.policy.session_age_s = 1800;  // 30m for 30d
    pool.turn->take_policy(pool.policy);
    pool.pump();
    CHECK(row() == about("removes 1 closed session 24 h"));
    pool.serve_for(600);
    CHECK(logged("removes 1 closed session with all results in 24 h"));
    pool.serve_for(day_s - 1800);
    CHECK(row() == about("removes 1 20 min"));
    CHECK(pool.there());

    SECTION("corrected in time") {
        pool.policy.session_age_s = 30 * static_cast<std::int32_t>(day_s);
        pool.turn->take_policy(pool.policy);
        pool.serve_for(2 * day_s);
        CHECK(row().empty());
        CHECK(pool.there());
    }
    SECTION("meant") {
        pool.serve_for(3600);
        CHECK_FALSE(pool.there());
        CHECK(row().empty());
    }
    SECTION("a start with it, of which no command tells") {
        const ConnId control = pool.control("ann", "prog");  // or the clock would seem to be ahead
        pool.ask<wire::OpenReply>(control, wire::OpenSession{2, wire::OpenMode::open, false});
        pool.start_at(pool.outside->wall);
        CHECK(row() == about("removes 1 60 min"));
        pool.serve_for(3000);
        CHECK(logged("removes 1 closed session with all results in 50 min"));
        CHECK(pool.there());
        pool.serve_for(1200);
        CHECK_FALSE(pool.there());
    }
}

TEST_CASE("what grows old in the first hour of a scheduler is no mistake") {
    Closed pool;
    pool.serve_for(30 * day_s - 1800);
    pool.start_at(pool.outside->wall);
    pool.serve_for(3000);
    const ConnId conn = pool.control("ann", "asks");
    for (const wire::ProblemRow &p : pool.ask<wire::DoctorReply>(conn, wire::Doctor{}).problems)
        CHECK(p.entity != "policy session_age");
    CHECK(pool.there());
}

TEST_CASE("ages are believed an hour after a start, and a day after a jump") {
    constexpr std::int64_t day_ms = day_s * 1000, wall = 1'000'000'000'000;
    const auto at = [](std::int64_t s) { return Instant{} + seconds(s); };
    AgeClock clock;
    clock.start(at(0), wall, wall - day_ms);
    CHECK(clock.judge(at(3599), wall + 3'599'000) == Verdict::young);
    CHECK(clock.judge(at(3600), wall + 3'600'000) == Verdict::trusted);
    CHECK(clock.held_ms() == wall);
    CHECK(clock.judge(at(3601), wall) == Verdict::trusted);  // put back: everything is younger
    CHECK(clock.judge(at(3602), wall + day_ms + 1'001) == Verdict::jumped);
    CHECK(clock.jump_ms() == day_ms + 1);
    CHECK(clock.judge(at(3602 + day_s), wall + 2 * day_ms) == Verdict::trusted);

    clock = AgeClock();
    clock.start(at(0), wall, wall - day_ms - 1);
    CHECK(clock.judge(at(7200), wall + 7'200'000) == Verdict::jumped);
    clock = AgeClock();
    for (const std::int64_t recorded : {std::int64_t{0}, INT64_MAX, wall}) {
        clock.start(at(0), wall, recorded);
        CHECK(clock.judge(at(3600), wall + 3'600'000) == Verdict::trusted);
    }
}

}  // namespace dcs::test
