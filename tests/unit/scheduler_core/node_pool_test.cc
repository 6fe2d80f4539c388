// Nodes of a container in a pool of their own.
#include <map>
#include <random>
#include <string>

#include <catch2/catch.hpp>

#include "scheduler/state/node_pool.h"

using namespace dcs::core;

using Pooled = std::map<int, std::string, std::less<int>, PooledNodes<std::pair<const int, std::string>>>;

TEST_CASE("a map with pooled nodes is a map, whatever is inserted, erased, copied and moved") {
    std::mt19937 random(7);
    Pooled pooled;
    std::map<int, std::string> plain;
    const auto same = [&] { return std::equal(pooled.begin(), pooled.end(), plain.begin(), plain.end()); };
    for (int step = 0; step < 20000; ++step) {
        const int key = static_cast<int>(random() % 700);
        switch (random() % 8) {
        case 0:
        case 1:
        case 2:
        case 3: pooled[key] = plain[key] = std::to_string(step) + " and more than fits into a short string"; break;
        case 4:
        case 5:
        case 6: CHECK(pooled.erase(key) == plain.erase(key)); break;
        default:
            if (step % 16 != 0) break;
            Pooled copy = pooled;
            pooled.clear();
            Pooled moved = std::move(copy);
            copy[1] = "what was moved from can be used";
            pooled = std::move(moved);
            Pooled assigned;
            assigned = pooled;
            std::swap(assigned, pooled);
        }
        if (step % 64 == 0) REQUIRE(same());
    }
    REQUIRE(same());
}

TEST_CASE("a map with pooled nodes may become large") {
    constexpr int many = 200'000;
    Pooled pooled;
    for (int i = 0; i < many; ++i) pooled.try_emplace(pooled.end(), i, std::to_string(i));
    for (int i = 0; i < many; i += 3) pooled.erase(i);
    for (int i = 0; i < many; i += 3) pooled[i] = std::to_string(i);
    int wrong = 0;
    for (int i = 0; i < many; ++i) wrong += pooled.at(i) != std::to_string(i);
    CHECK(wrong == 0);
    CHECK(pooled.size() == many);
}
