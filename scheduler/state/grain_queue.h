#pragma once
// The ready grains of a session in their order. Grains that were submitted one after the other stand at places one
// after the other: such a run is kept as one, so that a queue of a million grains takes next to nothing.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

#include "base/ids.h"
#include "base/require.h"

namespace dcs::core {

class GrainQueue {
    struct Run {
        GrainNumber first = 0;    // at the run's position, the next number at the next one
        std::int64_t length = 0;  // at least 1
    };
    using Runs = std::map<std::int64_t, Run>;  // by position; none touches the next one

public:
    struct Place {
        std::int64_t position = 0;
        GrainNumber grain = 0;
    };
    class Iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Place;
        using difference_type = std::ptrdiff_t;
        using pointer = const Place *;
        using reference = Place;
        Iterator() = default;
        Iterator(Runs::const_iterator run, std::int64_t at) : run_(run), at_(at) {}
        Place operator*() const { return {run_->first + at_, run_->second.first + static_cast<GrainNumber>(at_)}; }
        Iterator &operator++() {
            if (++at_ == run_->second.length) ++run_, at_ = 0;
            return *this;
        }
        Iterator operator++(int) {
            const Iterator before = *this;
            ++*this;
            return before;
        }
        bool operator==(const Iterator &) const = default;

    private:
        Runs::const_iterator run_;
        std::int64_t at_ = 0;
    };

    bool empty() const { return runs_.empty(); }
    std::size_t size() const { return size_; }
    Iterator begin() const { return {runs_.begin(), 0}; }
    Iterator end() const { return {runs_.end(), 0}; }
    Place front() const { return *begin(); }
    // At its position stands this grain.
    bool holds(const Place &place) const;
    bool any_in(std::int64_t from, std::int64_t end) const;  // at a position of [from, end)
    void insert(const Place &place);                         // whose position is free
    void erase(const Place &place);                          // which it holds

private:
    Runs::const_iterator run_of(std::int64_t position) const;  // that has this position; else end()

    Runs runs_;
    std::size_t size_ = 0;
};

}  // namespace dcs::core
