#include "scheduler/state/grain_queue.h"

#include <algorithm>

namespace dcs::core {

GrainQueue::Runs::const_iterator GrainQueue::run_of(std::int64_t position) const {
    auto run = runs_.upper_bound(position);
    if (run == runs_.begin()) return runs_.end();
    --run;
    return position < run->first + run->second.length ? run : runs_.end();
}

bool GrainQueue::holds(const Place &place, const MemoryNeed &need) const {
    const auto run = run_of(place.position);
    return run != runs_.end() && run->second.first + (place.position - run->first) == place.grain &&
           run->second.need == need;
}

bool GrainQueue::any_in(std::int64_t from, std::int64_t end) const {
    if (from >= end) return false;
    if (run_of(from) != runs_.end()) return true;
    const auto next = runs_.lower_bound(from);
    return next != runs_.end() && next->first < end;
}

namespace {
MemoryNeed least_of(const MemoryNeed &a, const MemoryNeed &b) {
    return {std::min(a.memory_mb, b.memory_mb), std::min(a.thrash, b.thrash)};
}
}  // namespace

void GrainQueue::begins(std::int64_t position, const MemoryNeed &need) {
    const auto [window, fresh] = least_.try_emplace(window_of(position), need);
    if (!fresh) window->second = least_of(window->second, need);
}

void GrainQueue::begins_no_more(std::int64_t position, const MemoryNeed &need) {
    const auto window = least_.find(window_of(position));
    MemoryNeed &least = window->second;
    if (least.memory_mb < need.memory_mb && least.thrash < need.thrash) return;
    auto run = runs_.lower_bound(beginning_of(window->first));
    const auto end = runs_.lower_bound(beginning_of(window->first + 1));
    if (run == end) {
        least_.erase(window);
        return;
    }
    for (least = run->second.need; ++run != end;) least = least_of(least, run->second.need);
}

void GrainQueue::insert(const Place &place, const MemoryNeed &need) {
    DCS_REQUIRE(run_of(place.position) == runs_.end(), "two grains at one place of a queue");
    const auto next = runs_.lower_bound(place.position);
    const bool joins_next = next != runs_.end() && next->first == place.position + 1 &&
                            next->second.first == place.grain + 1 && next->second.need == need;
    const std::int64_t behind = joins_next ? next->second.length : 0;
    const auto after = joins_next ? runs_.erase(next) : next;
    const auto before = after == runs_.begin() ? runs_.end() : std::prev(after);
    ++size_;
    if (before != runs_.end() && before->first + before->second.length == place.position &&
        before->second.first + before->second.length == place.grain && before->second.need == need) {
        before->second.length += 1 + behind;
    } else {
        runs_.emplace_hint(after, place.position, Run{place.grain, 1 + behind, need});
        begins(place.position, need);
    }
    if (joins_next) begins_no_more(place.position + 1, need);
}

void GrainQueue::erase(const Place &place, const MemoryNeed &need) {
    DCS_REQUIRE(holds(place, need), "a queue gives back what it has");
    const auto run = run_of(place.position);
    const auto [start, whole] = *run;
    const std::int64_t before = place.position - start, behind = whole.length - before - 1;
    auto next = runs_.erase(run);
    --size_;
    if (behind > 0) {
        next = runs_.emplace_hint(next, place.position + 1, Run{place.grain + 1, behind, need});
        begins(place.position + 1, need);
    }
    if (before > 0) runs_.emplace_hint(next, start, Run{whole.first, before, need});
    else if (behind == 0 || window_of(start) != window_of(start + 1)) begins_no_more(start, need);
}

}  // namespace dcs::core
