#include <algorithm>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "base/large_work.h"

TEST_CASE("each part is done once, however many there are") {
    for (const std::size_t count : {0u, 1u, 2u, 1000u}) {
        std::vector<int> done(count);
        dcs::in_parts(count, [&](std::size_t i) { ++done[i]; });
        CHECK(done == std::vector<int>(count, 1));
    }
}

TEST_CASE("a part is done once it was made, and none from the one on that was not") {
    for (const std::size_t made : {0u, 1u, 7u, 1000u}) {
        std::vector<int> ready(1000), done(1000);
        dcs::in_parts(
            ready.size(),
            [&](std::size_t i) {
                ready[i] = i < made;
                return i < made;
            },
            [&](std::size_t i) { done[i] += ready[i]; });
        std::vector<int> expected(1000);
        std::fill_n(expected.begin(), made, 1);
        CHECK(done == expected);
        CHECK(ready == expected);
    }
}

TEST_CASE("large memory can be used to its last byte and is as large as was asked") {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, dcs::LargeMemory::page, dcs::LargeMemory::page + 1}) {
        dcs::LargeMemory memory(size);
        REQUIRE(memory.bytes().size() == size);
        if (size > 0) memory.bytes().front() = memory.bytes().back() = 'x';
        if (size > 5000) CHECK(memory.mapped(4095, 2).size() == 2);
        CHECK(memory.mapped(0, size).data() == memory.bytes().data());
        const dcs::LargeMemory moved(std::move(memory));
        CHECK(moved.bytes().size() == size);
        CHECK((size == 0 || moved.bytes().back() == 'x'));
        CHECK(memory.bytes().empty());
    }
}
