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

TEST_CASE("large memory can be used to its last byte and is as large as was asked") {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, dcs::LargeMemory::page, dcs::LargeMemory::page + 1}) {
        dcs::LargeMemory memory(size);
        REQUIRE(memory.bytes().size() == size);
        if (size > 0) memory.bytes().front() = memory.bytes().back() = 'x';
        const dcs::LargeMemory moved(std::move(memory));
        CHECK(moved.bytes().size() == size);
        CHECK((size == 0 || moved.bytes().back() == 'x'));
        CHECK(memory.bytes().empty());
    }
}
