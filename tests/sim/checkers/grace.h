#pragma once
// No party is given up before his time: a host is dead only after its whole limit of silence, and the
// scheduler's own absence, start or pause counts for no party (each time the limit begins again).
#include <map>
#include <vector>

#include "scheduler/state/state.h"
#include "sim/clock.h"

namespace dcs::sim {

class Grace {
public:
    explicit Grace(Clock &clock) : clock_(clock) {}
    // `report`: one that a full disk may refuse, and then it counts for nothing.
    void hears(ConnId conn, bool report) {
        if (!report || !clock_.plan.has(Fault::disk_full)) heard_[conn] = clock_.now;
    }
    void started() { known_.clear(), heard_.clear(); }
    void before_turn() { decided_ = clock_.now; }
    void after_turn(const core::State &state, Instant awake_since);

private:
    struct Known {
        core::HostStatus status = core::HostStatus::unknown;
        bool configured = false;
        ConnId conn{};
        Instant configured_since{};
    };
    Clock &clock_;
    Instant decided_{};         // when what the turn now shows was decided: its commit takes time
    std::vector<Known> known_;  // by HostId
    std::map<ConnId, Instant> heard_;
};

}  // namespace dcs::sim
