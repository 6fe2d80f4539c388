#include "scheduler/state/result_order.h"

#include <algorithm>
#include <bit>

#include "base/planted.h"
#include "base/require.h"

namespace dcs::core {

ResultOrder::ResultOrder(std::vector<GrainNumber> grains) : grains_(std::move(grains)) {
    counts_.resize((grains_.size() + in_block - 1) / in_block);
    for (std::size_t begin = 0; begin < grains_.size(); begin += in_block) {
        const auto of_block = std::min(grains_.size() - begin, in_block);
        const auto at = grains_.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto some =
            std::count_if(at, at + static_cast<std::ptrdiff_t>(of_block), [](GrainNumber n) { return n >= 0; });
        add(begin, static_cast<int>(some));
    }
}

void ResultOrder::add(std::size_t index, int sign) {
    for (std::size_t i = index / in_block; i < counts_.size(); i |= i + 1) counts_[i] += sign;
}

void ResultOrder::resize(std::size_t size) {
    for (std::size_t i = size; i < grains_.size(); ++i)
        if (grains_[i] >= 0) set(i, -1);
    grains_.resize(size, -1);
    const std::size_t blocks = (size + in_block - 1) / in_block;
    for (std::size_t i = counts_.size(); i < blocks; ++i)
        counts_.push_back(count_below(i * in_block) - count_below((i & (i + 1)) * in_block));
    counts_.resize(blocks);
}

void ResultOrder::set(std::size_t index, GrainNumber number) {
    DCS_REQUIRE(index < grains_.size(), "a finished grain has a place in its session's order");
    GrainNumber &place = grains_[index];
    DCS_REQUIRE((place == -1) != (number == -1), "a place in the order has one grain");
    place = number;
    if (number != -1 || !planted("core.holes_are_results")) add(index, number == -1 ? -1 : 1);
}

std::int32_t ResultOrder::count_below(std::size_t end) const {
    std::int32_t count = 0;
    for (std::size_t i = end / in_block; i > 0; i &= i - 1) count += counts_[i - 1];
    const auto at = grains_.begin() + static_cast<std::ptrdiff_t>(end);
    const auto is_one = [](GrainNumber n) { return n >= 0; };
    return count +
           static_cast<std::int32_t>(std::count_if(at - static_cast<std::ptrdiff_t>(end % in_block), at, is_one));
}

bool ResultOrder::counts_agree() const { return ResultOrder(grains_).counts_ == counts_; }

std::size_t ResultOrder::first_from(std::size_t index) const {
    const std::size_t rest = std::min(size(), (index / in_block + 1) * in_block);
    for (; index < rest; ++index)
        if (grains_[index] >= 0) return index;
    // As many blocks from the first one on as have no more results than there are before: down the tree.
    std::int32_t before = count_below(index);
    std::size_t blocks = 0;
    for (std::size_t step = std::bit_floor(counts_.size()); step > 0; step /= 2) {
        if (blocks + step > counts_.size() || counts_[blocks + step - 1] > before) continue;
        blocks += step;
        before -= counts_[blocks - 1];
    }
    index = std::min(size(), blocks * in_block);
    while (index < size() && grains_[index] < 0) ++index;
    return index;
}

}  // namespace dcs::core
