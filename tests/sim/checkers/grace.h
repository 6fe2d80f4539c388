#pragma once
// Nobody is given up before his time: a host is dead only after its whole limit of silence, and the
// scheduler's own absence, start or pause counts for nobody (each time the limit begins anew).
#include <map>
#include <vector>

#include "scheduler/core/state.h"
#include "sim/clock.h"

namespace dcs::sim {

class Grace {
public:
    explicit Grace(Clock &clock) : clock_(clock) {}
    void hears(ConnId conn) { heard_[conn] = clock_.now; }
    void started() { known_.clear(), heard_.clear(); }
    void after_turn(const core::State &state, Instant awake_since);

private:
    struct Known {
        core::HostStatus status = core::HostStatus::unknown;
        bool configured = false;
        ConnId conn = 0;
        Instant configured_since{};
    };
    Clock &clock_;
    std::vector<Known> known_;  // by HostId
    std::map<ConnId, Instant> heard_;
};

}  // namespace dcs::sim
