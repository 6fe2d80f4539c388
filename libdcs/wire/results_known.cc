#include "wire/results_known.h"

#include <algorithm>

namespace dcs::wire {

ResultsKnown::ResultsKnown(std::vector<std::int32_t> grains) : grains_(std::move(grains)), told_(grains_.size()) {}

void ResultsKnown::take(const Event &e) {
    if (!std::exchange(begun_, true)) imported_ = e.kind != EventKind::opened;
    if (e.grain >= 0) {
        const auto found = std::lower_bound(grains_.begin(), grains_.end(), e.grain);
        if (found == grains_.end() || *found != e.grain) return;
        return take_grain(e, told_[static_cast<std::size_t>(found - grains_.begin())]);
    }
    if (e.kind == EventKind::handed_out && (e.number >= handed_out_ || imported_)) handed_out_ = e.number;
    if (e.kind == EventKind::set_back) handed_out_ = std::min(handed_out_, e.number);
    if (e.kind == EventKind::imported) {
        imported_ = true;
        ++imports_;  // no grain counts as killed any more
    }
}

// An event of a grain that was never submitted there counts only if an import explains it.
void ResultsKnown::take_grain(const Event &e, OfGrain &g) {
    if (e.kind == EventKind::submitted) {
        if (!g.told) g = OfGrain{handed_out_, 0, true, 0};
        return;
    }
    if (!g.told && !imported_ && e.kind != EventKind::killed) return;
    g.told = true;
    switch (e.kind) {
    case EventKind::killed:
        if (g.killed_in == imports_) return;
        g.killed_in = imports_;
        g.killed_after = handed_out_;
        return;
    case EventKind::left:
    case EventKind::finished: g.killed_in = 0; return;
    case EventKind::undone:
        g.killed_in = 0;
        g.killed_after = 0;
        return;
    case EventKind::forgotten: g = OfGrain{}; return;
    default: return;
    }
}

}  // namespace dcs::wire
