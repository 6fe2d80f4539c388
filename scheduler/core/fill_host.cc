// One grain for one free slot, by seniority and then queue order; then the next slot, and then some to wait there.
#include "scheduler/core/ahead.h"
#include "scheduler/core/placement.h"

namespace dcs::core {

void fill_host(Draft &d, const FillHost &in) {
    // Something ended there: what it had of the pool may be needed on another host.
    if (const auto waits = first_for_pool(d.state, d.now)) d.follow_up(PlaceGrain{*waits});
    if (d.state.free_slots(in.host) == 0) return fill_ahead(d, in.host);
    const std::optional<GrainKey> first = first_for_host(d.state, d.now, in.host, {});
    if (!first) return recall_for_idle(d, in.host);
    launch(d, *first, in.host, false);
    d.follow_up(FillHost{in.host});
}

}  // namespace dcs::core
