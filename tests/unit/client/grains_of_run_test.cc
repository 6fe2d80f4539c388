#include "client/grains_of_run.h"

#include "support/catch.h"

#include "wire/user_calls.h"

using namespace dcs;
using namespace dcs::client;

TEST_CASE("a set of numbers joins what touches", "[client]") {
    NumberSet set;
    for (const int n : {5, 1, 3, 4, 2, 9, 7}) CHECK(set.add(n));
    for (const int n : {1, 2, 3, 4, 5, 7, 9}) CHECK_FALSE(set.add(n));
    for (const int n : {0, 6, 8, 10}) CHECK_FALSE(set.has(n));
    CHECK(set.add(8));
    CHECK(set.add(6));
    for (int n = 1; n <= 9; ++n) CHECK(set.has(n));
}

TEST_CASE("a run that repeats another one knows when all of its grains have been reported", "[client]") {
    GrainsOfRun run(true);
    run.submitted({1, 2, 3}, wire::Done{3, 1});
    CHECK(run.without_result() == 2u);
    run.taken(3);
    run.taken(9);  // another thread of it submits that one only now
    CHECK(run.without_result() == 1u);
    run.submitted({9}, wire::Done{1, 0});
    run.submitted({1, 2}, wire::Done{2, 1});  // once more
    CHECK(run.without_result() == 1u);
    run.taken(2);
    CHECK(run.without_result() == 0u);
    run.submitted({4}, wire::Done{0, 0});
    CHECK(run.without_result() == 1u);
}

TEST_CASE("a run that differs from the one that it repeats took results of grains that it has not submitted",
          "[client]") {
    GrainsOfRun run(true);
    run.submitted({1, 2, 3, 7}, wire::Done{4, 0});
    for (const int grain : {3, 1, 2}) run.taken(grain);
    CHECK_FALSE(run.only_taken());
    for (const int grain : {8, 6, 7}) run.taken(grain);
    CHECK(run.only_taken() == 6);
    run.submitted({6}, wire::Done{1, 0});  // by a thread that is late
    CHECK(run.only_taken() == 8);
    run.submitted({4, 5, 8, 9}, wire::Done{4, 0});
    CHECK_FALSE(run.only_taken());
}

TEST_CASE("a run that only adds to a session takes all of its results", "[client]") {
    GrainsOfRun run(true);
    run.submitted({10, 11}, wire::Done{});
    run.taken(1);
    CHECK_FALSE(run.without_result());
    CHECK_FALSE(run.only_taken());
    GrainsOfRun first;
    first.submitted({1}, wire::Done{1, 0});
    CHECK_FALSE(first.without_result());
}
