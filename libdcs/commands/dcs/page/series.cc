#include "series.h"

#include <algorithm>

namespace dcs::commands::page {

void Series::take(std::int64_t at_ms, std::int64_t ended, std::int64_t ready, std::int64_t running) {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
        Range &range = ranges_[i];
        Base &base = bases_[i];
        const bool first = base.at_ms == 0 || at_ms < base.at_ms;  // or the clock was set back
        const std::int64_t passed_ms = at_ms - base.at_ms;
        if (!first && passed_ms < range.step_ms) continue;
        // A host that left the table takes its total with it.
        const double minutes = static_cast<double>(passed_ms) / 60'000;
        const double rate = first ? 0 : static_cast<double>(std::max<std::int64_t>(0, ended - base.ended)) / minutes;
        if (!first) range.points.push_back({at_ms, rate, ready, running});
        base = {at_ms, ended};
        const std::int64_t oldest = at_ms - range.step_ms * static_cast<std::int64_t>(points_kept);
        while (!range.points.empty() && range.points.front().at_ms < oldest) range.points.pop_front();
    }
}

}  // namespace dcs::commands::page
