// The order of results and how many there are below a place, beside a plain list that is counted each time.
#include <algorithm>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/state/result_order.h"

using namespace dcs;
using namespace dcs::core;

namespace {
void check_same(const ResultOrder &order, const std::vector<GrainNumber> &expected) {
    REQUIRE(order.size() == expected.size());
    REQUIRE(order.grains() == expected);
    std::int32_t below = 0;
    for (std::size_t i = 0; i <= expected.size(); ++i) {
        REQUIRE(order.count_below(i) == below);
        const auto from = expected.begin() + static_cast<std::ptrdiff_t>(i);
        const auto first = std::find_if(from, expected.end(), [](GrainNumber n) { return n >= 0; });
        REQUIRE(order.first_from(i) == static_cast<std::size_t>(first - expected.begin()));
        if (i < expected.size() && expected[i] >= 0) ++below;
    }
}
}  // namespace

TEST_CASE("an order of results counts those below each place, whatever comes, goes and is taken back") {
    for (unsigned seed = 0; seed < 30; ++seed) {
        std::mt19937 random(seed);
        ResultOrder order;
        std::vector<GrainNumber> expected;
        const unsigned holes = random() % 4;  // from hardly any to nearly all
        for (int step = 0; step < 40; ++step) {
            const auto kind = random() % 4;
            const std::size_t some = random() % (kind == 0 ? 3 : 200);
            if (kind < 2) {  // new ones at the end
                for (std::size_t i = 0; i < some; ++i) {
                    expected.push_back(random() % 4 < holes ? -1 : static_cast<GrainNumber>(expected.size()));
                    order.resize(expected.size());
                    if (expected.back() >= 0) order.set(expected.size() - 1, expected.back());
                }
            } else if (kind == 2) {  // killed, or finished again after all
                for (std::size_t i = 0; i < some && !expected.empty(); ++i) {
                    const std::size_t at = random() % expected.size();
                    expected[at] = expected[at] >= 0 ? -1 : static_cast<GrainNumber>(at);
                    order.set(at, expected[at]);
                }
            } else {  // the end is taken back
                expected.resize(expected.size() - std::min(expected.size(), some));
                order.resize(expected.size());
            }
            check_same(order, expected);
        }
    }
}

TEST_CASE("orders of the same results are the same, however they came to be") {
    ResultOrder grown, at_once;
    at_once.resize(1000);
    for (std::size_t i = 0; i < 1000; ++i) {
        grown.resize(i + 1);
        grown.set(i, static_cast<GrainNumber>(i));
        at_once.set(999 - i, static_cast<GrainNumber>(999 - i));
    }
    CHECK(grown == at_once);
    grown.set(500, -1);
    CHECK_FALSE(grown == at_once);
    at_once.set(500, -1);
    CHECK(grown == at_once);
}
