#include "flow.h"

#include <algorithm>

#include "base/require.h"

namespace dcs::commands {

JobFlow::JobFlow(const JobFile &file)
    : file_(file), parts_(file.grains.size()), grains_(static_cast<std::size_t>(file.count) + 1) {
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].left = file.grains[i].count();
}

// One without items has nothing to wait for: it is done when it would start.
std::vector<std::size_t> JobFlow::take_startable() {
    std::vector<std::size_t> found;
    for (bool more = true; std::exchange(more, false);)
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            const auto &after = file_.grains[i].after;
            const auto done = [&](std::size_t j) { return parts_[j].standing == Standing::done; };
            if (parts_[i].standing != Standing::waits || !std::all_of(after.begin(), after.end(), done)) continue;
            const bool empty = parts_[i].left == 0;
            parts_[i].standing = empty ? Standing::done : Standing::started;
            more = more || empty;
            if (!empty) found.push_back(i);
        }
    return found;
}

std::size_t JobFlow::table_of(std::int32_t grain) const {
    const auto &all = file_.grains;
    const auto behind = std::upper_bound(all.begin(), all.end(), grain,
                                         [](std::int32_t number, const JobGrain &g) { return number < g.first; });
    const std::size_t at = static_cast<std::size_t>(behind - all.begin());
    return at > 0 && grain < all[at - 1].first + all[at - 1].count() ? at - 1 : all.size();
}

bool JobFlow::has_ended(std::int32_t grain) const {
    return grain >= 0 && static_cast<std::size_t>(grain) < grains_.size() && grains_[static_cast<std::size_t>(grain)];
}

void JobFlow::ended(std::int32_t grain, bool failed) {
    const std::size_t table = table_of(grain);
    if (table == parts_.size() || has_ended(grain)) return;
    grains_[static_cast<std::size_t>(grain)] = true;
    Part &part = parts_[table];
    DCS_REQUIRE(part.left > 0, "it has grains that have not ended");
    ++ended_;
    failed_ += failed;
    part.failed = part.failed || failed;
    if (--part.left > 0) return;
    part.standing = part.failed ? Standing::failed : Standing::done;
    if (part.failed) bar_dependents();
}

void JobFlow::bar_dependents() {
    for (bool more = true; std::exchange(more, false);)
        for (std::size_t i = 0; i < parts_.size(); ++i)
            for (const std::size_t j : file_.grains[i].after) {
                const bool never = parts_[j].standing == Standing::failed || parts_[j].standing == Standing::barred;
                if (!never || parts_[i].standing != Standing::waits) continue;
                parts_[i].standing = Standing::barred;
                parts_[i].because = j;
                more = true;
            }
}

bool JobFlow::over() const {
    return std::all_of(parts_.begin(), parts_.end(), [](const Part &part) {
        return part.standing != Standing::waits && part.standing != Standing::started;
    });
}

std::string JobFlow::why_barred(std::size_t table) const {
    DCS_REQUIRE(parts_[table].standing == Standing::barred, "it does not run");
    const std::size_t because = parts_[table].because;
    return "after " + file_.grains[because].name +
           (parts_[because].standing == Standing::failed ? ", which failed" : ", which does not run either");
}

std::int64_t JobFlow::count_barred() const {
    std::int64_t n = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i)
        if (parts_[i].standing == Standing::barred) n += file_.grains[i].count();
    return n;
}

}  // namespace dcs::commands
