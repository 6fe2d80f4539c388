#include "lanes.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace dcs::commands::page {
namespace {

constexpr std::int64_t least_span_ms = 60'000;
constexpr std::size_t most_lanes = 16;

// A host gets grains ahead of its slots: such a run is shown from when a slot was free, or not yet.
void place(HostRuns &host, std::size_t slots) {
    std::vector<std::int64_t> free(std::clamp<std::size_t>(slots, 1, most_lanes), INT64_MIN);
    const auto waits = [&](Placed &p) {
        std::size_t lane = 0;  // the first free one, else that which is free soonest
        while (lane < free.size() && free[lane] > p.run.from_ms) ++lane;
        if (lane == free.size())
            lane = static_cast<std::size_t>(std::min_element(free.begin(), free.end()) - free.begin());
        p.from_ms = std::max(p.run.from_ms, free[lane]);
        if (p.run.to_ms < 0 && p.from_ms >= p.to_ms) return true;
        p.from_ms = std::min(p.from_ms, p.to_ms);
        p.lane = lane;
        free[lane] = std::max(free[lane], p.to_ms);
        host.lanes = std::max(host.lanes, lane + 1);
        return false;
    };
    std::vector<Placed> placed;
    for (Placed &p : host.runs)
        if (!waits(p)) placed.push_back(std::move(p));
    host.runs = std::move(placed);
}

}  // namespace

Lanes lanes_of(const Snapshot &s, const Journal &journal, std::int64_t now_ms) {
    std::vector<const Run *> runs = journal.running();
    for (const Run &run : journal.ended()) runs.push_back(&run);
    Lanes lanes{.from_ms = now_ms - least_span_ms, .to_ms = now_ms};
    for (const Run *run : runs) lanes.from_ms = std::min(lanes.from_ms, run->from_ms);
    lanes.from_ms = std::max(lanes.from_ms, now_ms - Journal::window_ms);
    std::sort(runs.begin(), runs.end(), [](const Run *a, const Run *b) {
        return std::tie(a->from_ms, a->session, a->grain) < std::tie(b->from_ms, b->session, b->grain);
    });
    std::map<std::string, HostRuns> by_host;
    for (const Run *run : runs) {
        const std::int64_t to_ms = run->to_ms < 0 ? std::max(now_ms, run->from_ms) : run->to_ms;
        if (to_ms >= lanes.from_ms) by_host[run->host].runs.push_back({*run, run->from_ms, to_ms, 0});
    }
    std::map<std::string, std::int32_t> slots;
    for (const wire::HostRow &row : s.hosts) slots[row.name] = row.slots;
    for (auto &[name, host] : by_host) {
        host.host = name;
        const auto known = slots.find(name);
        place(host, known == slots.end() ? most_lanes : static_cast<std::size_t>(std::max(1, known->second)));
        lanes.hosts.push_back(std::move(host));
    }
    return lanes;
}

std::int64_t axis_step_s(const Lanes &lanes, int most) {
    for (const int s : {10, 30, 60, 120, 300, 600, 1200})
        if (lanes.span_ms() / (std::int64_t{s} * 1000) <= most) return s;
    return 3600;
}

std::string ago_text(std::int64_t ago_s) {
    if (ago_s == 0) return "now";
    return ago_s % 60 != 0 ? std::to_string(ago_s) + " s ago" : std::to_string(ago_s / 60) + " min ago";
}

}  // namespace dcs::commands::page
