#pragma once
// The ready grains of a session in their order. Grains that were submitted one after the other stand at places one
// after the other: such a run, of grains that need as much memory, is kept as one. So a queue of a million grains takes
// next to nothing, and a host without so much memory passes over them at once. Where each needs another amount, it
// passes over whole windows of places.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

#include "base/ids.h"
#include "base/require.h"

namespace dcs::core {

// What a grain demands of a host's memory.
struct MemoryNeed {
    std::int32_t memory_mb = 0, thrash = 0;
    bool operator==(const MemoryNeed &) const = default;
};

class GrainQueue {
    struct Run {
        GrainNumber first = 0;    // at the run's position, the next number at the next one
        std::int64_t length = 0;  // at least 1
        MemoryNeed need;          // of each
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
        friend class GrainQueue;
        Runs::const_iterator run_;
        std::int64_t at_ = 0;
    };

    bool empty() const { return runs_.empty(); }
    std::size_t size() const { return size_; }
    Iterator begin() const { return {runs_.begin(), 0}; }
    Iterator end() const { return {runs_.end(), 0}; }
    Place front() const { return *begin(); }
    // The first place from `at` on of a grain whose need `fits`. What fits, fits also with less of each.
    template <typename Fits> Iterator fitting(Iterator at, const Fits &fits) const {
        if (at == end() || fits(at.run_->second.need)) return at;
        for (auto run = std::next(at.run_); run != runs_.end();) {
            const std::int64_t window = window_of(run->first);
            if (!fits(least_.at(window))) {
                run = runs_.lower_bound(beginning_of(window + 1));
                continue;
            }
            for (; run != runs_.end() && window_of(run->first) == window; ++run)
                if (fits(run->second.need)) return {run, 0};
        }
        return end();
    }
    // At its position stands this grain, with this need.
    bool holds(const Place &place, const MemoryNeed &need) const;
    bool any_in(std::int64_t from, std::int64_t end) const;   // at a position of [from, end)
    void insert(const Place &place, const MemoryNeed &need);  // whose position is free
    void erase(const Place &place, const MemoryNeed &need);   // which it holds

private:
    static constexpr std::int64_t window_length = 512;
    static std::int64_t window_of(std::int64_t position) { return position >> 9; }
    static std::int64_t beginning_of(std::int64_t window) { return window * window_length; }
    Runs::const_iterator run_of(std::int64_t position) const;  // that has this position; else end()
    void begins(std::int64_t position, const MemoryNeed &need);
    void begins_no_more(std::int64_t position, const MemoryNeed &need);

    Runs runs_;
    std::map<std::int64_t, MemoryNeed> least_;  // by window: of each part the least of the runs that begin there
    std::size_t size_ = 0;
};

}  // namespace dcs::core
