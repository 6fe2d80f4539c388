// The queue of ready grains, beside a map that holds each place by itself.
#include <map>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/state/grain_queue.h"

using namespace dcs;
using namespace dcs::core;

namespace {
struct Held {
    GrainNumber grain = 0;
    MemoryNeed need;
    bool operator==(const Held &) const = default;
};
using Places = std::map<std::int64_t, Held>;

std::map<std::int64_t, GrainNumber> places_of(const GrainQueue &queue) {
    std::map<std::int64_t, GrainNumber> all;
    for (const auto &[position, grain] : queue) all.emplace(position, grain);
    return all;
}
std::map<std::int64_t, GrainNumber> numbers_of(const Places &places) {
    std::map<std::int64_t, GrainNumber> all;
    for (const auto &[position, held] : places) all.emplace(position, held.grain);
    return all;
}

// Those that fit, and how often that was asked.
std::map<std::int64_t, GrainNumber> fitting(const GrainQueue &queue, const MemoryNeed &most, int &asked) {
    const auto fits = [&](const MemoryNeed &need) {
        ++asked;
        return need.memory_mb <= most.memory_mb && need.thrash <= most.thrash;
    };
    std::map<std::int64_t, GrainNumber> all;
    for (auto at = queue.fitting(queue.begin(), fits); at != queue.end(); at = queue.fitting(++at, fits))
        all.emplace((*at).position, (*at).grain);
    return all;
}
}  // namespace

TEST_CASE("a queue of grains holds its places in order, whatever is taken out and put back") {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        GrainQueue queue;
        Places expected;
        std::int64_t front = 0, back = 500;  // so that it crosses the bounds of windows
        GrainNumber next = 0;
        const auto put = [&](std::int64_t position, const Held &held) {
            expected.emplace(position, held);
            queue.insert({position, held.grain}, held.need);
        };
        for (int step = 0; step < 300; ++step) {
            const auto kind = random() % 8;
            if (kind < 4) {  // submitted: behind all others, mostly with the next number and the same need
                next += random() % 5 == 0 ? 2 : 1;
                const auto amount = [&] { return random() % 4 == 0 ? static_cast<std::int32_t>(random() % 4) : 1; };
                put(back++, {next, {amount(), seed % 2 == 0 ? 0 : amount()}});
            } else if (!expected.empty()) {
                auto taken = kind < 6 ? expected.begin() : std::next(expected.begin(), random() % expected.size());
                const auto [position, held] = *taken;
                expected.erase(taken);
                queue.erase({position, held.grain}, held.need);
                CHECK_FALSE(queue.holds({position, held.grain}, held.need));
                if (kind == 5) put(--front, held);   // given back: before all others
                if (kind == 7) put(position, held);  // undone
            }
            REQUIRE(queue.size() == expected.size());
            REQUIRE(queue.empty() == expected.empty());
            REQUIRE(places_of(queue) == numbers_of(expected));
            const std::int64_t from = front - 2 + static_cast<std::int64_t>(random() % 40), end = from + random() % 20;
            const auto first = expected.lower_bound(from);
            REQUIRE(queue.any_in(from, end) == (first != expected.end() && first->first < end));
            const MemoryNeed most{static_cast<std::int32_t>(random() % 4), static_cast<std::int32_t>(random() % 4)};
            Places small;
            for (const auto &[position, held] : expected)
                if (held.need.memory_mb <= most.memory_mb && held.need.thrash <= most.thrash)
                    small.emplace(position, held);
            int asked = 0;
            REQUIRE(fitting(queue, most, asked) == numbers_of(small));
            if (expected.empty()) continue;
            CHECK(queue.front().position == expected.begin()->first);
            CHECK(queue.front().grain == expected.begin()->second.grain);
            for (const auto &[position, held] : expected) REQUIRE(queue.holds({position, held.grain}, held.need));
            const auto &[position, held] = *expected.begin();
            CHECK_FALSE(queue.holds({position, held.grain + 1}, held.need));
            CHECK_FALSE(queue.holds({position, held.grain}, {held.need.memory_mb + 1, held.need.thrash}));
        }
    }
}

TEST_CASE("a host passes over many grains that need more memory than it has") {
    constexpr int count = 100'000;
    for (const int kinds : {1, 2, 5000}) {
        GrainQueue queue;
        for (int i = 0; i < count; ++i) queue.insert({i, i + 1}, {1000 + i % kinds, 0});
        queue.insert({count, count + 7}, {1, 0});
        int asked = 0;
        CHECK(fitting(queue, {999, 0}, asked) == std::map<std::int64_t, GrainNumber>{{count, count + 7}});
        CHECK(asked < count / 100);
        for (int i = 0; i < count; ++i) queue.erase({i, i + 1}, {1000 + i % kinds, 0});
        CHECK(queue.size() == 1);
    }
}
