#pragma once
// The results of a session in the order of its grains' ends. Killed and forgotten ones leave holes. Each
// answer to a control program has the number of results without them, so that number is kept and not counted again.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace dcs::core {

class ResultOrder {
public:
    ResultOrder() = default;
    explicit ResultOrder(std::vector<GrainNumber> grains);  // -1: a hole
    std::size_t size() const { return grains_.size(); }
    GrainNumber operator[](std::size_t index) const { return grains_[index]; }
    const std::vector<GrainNumber> &grains() const { return grains_; }  // -1: a hole
    bool any_at(std::size_t index) const { return index < size() && grains_[index] >= 0; }
    // The results whose index is below `end`; holes are none.
    std::int32_t count_below(std::size_t end) const;
    // The index of the first result from this one on; size(): there is none.
    std::size_t first_from(std::size_t index) const;

    // New places at the end are holes.
    void resize(std::size_t size);
    // Into a hole, or -1: a hole again.
    void set(std::size_t index, GrainNumber number);

    bool operator==(const ResultOrder &) const = default;
    // Its counts are those of its grains.
    bool counts_agree() const;

private:
    // At most so many places are looked at one by one.
    static constexpr std::size_t in_block = 64;
    void add(std::size_t index, int sign);

    std::vector<GrainNumber> grains_;
    // A Fenwick tree of the results in each block of places: entry i has those of the blocks (i & (i + 1)) to i.
    std::vector<std::int32_t> counts_;
};

}  // namespace dcs::core
