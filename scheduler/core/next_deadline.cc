#include <algorithm>

#include "scheduler/core/decision.h"

namespace dcs::core {

Instant next_deadline(const State &state) {
    Instant earliest = Instant::never();
    for (const Host &host : state.hosts) {
        if (!host.configured || host.status == HostStatus::dead) continue;
        Duration left = host.config.limit;
        if (host.status != HostStatus::delinquent) left = std::min(left, host.config.alert);
        earliest = std::min(earliest, host.last_contact + left + Duration{1});
    }
    return earliest;
}

}  // namespace dcs::core
