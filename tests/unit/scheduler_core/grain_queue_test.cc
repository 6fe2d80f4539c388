// The queue of ready grains, beside a map that holds each place by itself.
#include <map>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/state/grain_queue.h"

using namespace dcs;
using namespace dcs::core;

namespace {
using Places = std::map<std::int64_t, GrainNumber>;

Places places_of(const GrainQueue &queue) {
    Places all;
    for (const auto &[position, grain] : queue) all.emplace(position, grain);
    return all;
}
}  // namespace

TEST_CASE("a queue of grains holds its places in order, whatever is taken out and put back") {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        GrainQueue queue;
        Places expected;
        std::int64_t front = 0, back = 0;
        GrainNumber next = 0;
        for (int step = 0; step < 300; ++step) {
            const auto kind = random() % 8;
            if (kind < 4) {  // submitted: behind all others, mostly with the next number
                next += random() % 5 == 0 ? 2 : 1;
                expected.emplace(back, next);
                queue.insert({back++, next});
            } else if (!expected.empty()) {
                auto taken = kind < 6 ? expected.begin() : std::next(expected.begin(), random() % expected.size());
                const auto [position, grain] = *taken;
                expected.erase(taken);
                queue.erase({position, grain});
                CHECK_FALSE(queue.holds({position, grain}));
                if (kind == 5) {  // given back: before all others
                    expected.emplace(--front, grain);
                    queue.insert({front, grain});
                } else if (kind == 7) {  // undone
                    expected.emplace(position, grain);
                    queue.insert({position, grain});
                }
            }
            REQUIRE(queue.size() == expected.size());
            REQUIRE(queue.empty() == expected.empty());
            REQUIRE(places_of(queue) == expected);
            const std::int64_t from = front - 2 + static_cast<std::int64_t>(random() % 40), end = from + random() % 20;
            const auto first = expected.lower_bound(from);
            REQUIRE(queue.any_in(from, end) == (first != expected.end() && first->first < end));
            if (expected.empty()) continue;
            CHECK(queue.front().position == expected.begin()->first);
            CHECK(queue.front().grain == expected.begin()->second);
            for (const auto &[position, grain] : expected) REQUIRE(queue.holds({position, grain}));
            CHECK_FALSE(queue.holds({expected.begin()->first, expected.begin()->second + 1}));
        }
    }
}
