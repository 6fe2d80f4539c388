#include "scheduler/state/grain_queue.h"

namespace dcs::core {

GrainQueue::Runs::const_iterator GrainQueue::run_of(std::int64_t position) const {
    auto run = runs_.upper_bound(position);
    if (run == runs_.begin()) return runs_.end();
    --run;
    return position < run->first + run->second.length ? run : runs_.end();
}

bool GrainQueue::holds(const Place &place) const {
    const auto run = run_of(place.position);
    return run != runs_.end() && run->second.first + (place.position - run->first) == place.grain;
}

bool GrainQueue::any_in(std::int64_t from, std::int64_t end) const {
    if (from >= end) return false;
    if (run_of(from) != runs_.end()) return true;
    const auto next = runs_.lower_bound(from);
    return next != runs_.end() && next->first < end;
}

void GrainQueue::insert(const Place &place) {
    DCS_REQUIRE(run_of(place.position) == runs_.end(), "two grains at one place of a queue");
    const auto next = runs_.lower_bound(place.position);
    const bool joins_next =
        next != runs_.end() && next->first == place.position + 1 && next->second.first == place.grain + 1;
    const std::int64_t behind = joins_next ? next->second.length : 0;
    if (next != runs_.begin()) {
        auto &[start, run] = *std::prev(next);
        if (start + run.length == place.position && run.first + run.length == place.grain) {
            run.length += 1 + behind;
            if (joins_next) runs_.erase(next);
            ++size_;
            return;
        }
    }
    const auto after = joins_next ? runs_.erase(next) : next;
    runs_.emplace_hint(after, place.position, Run{place.grain, 1 + behind});
    ++size_;
}

void GrainQueue::erase(const Place &place) {
    DCS_REQUIRE(holds(place), "a queue gives back what it has");
    const auto run = run_of(place.position);
    const auto [start, whole] = *run;
    const std::int64_t before = place.position - start, behind = whole.length - before - 1;
    const auto next = runs_.erase(run);
    if (behind > 0) {
        const auto rest = runs_.emplace_hint(next, place.position + 1, Run{place.grain + 1, behind});
        if (before > 0) runs_.emplace_hint(rest, start, Run{whole.first, before});
    } else if (before > 0) {
        runs_.emplace_hint(next, start, Run{whole.first, before});
    }
    --size_;
}

}  // namespace dcs::core
