#pragma once
// What the backup has acknowledged is there or was handed over, and the scheduler believes no server before that.
#include <string>

#include "backupd/core/state.h"
#include "grainserver/core/state.h"
#include "scheduler/state/state.h"
#include "sim/clock.h"

namespace dcs::sim {

class BackupCheck {
public:
    explicit BackupCheck(Clock &clock) : clock_(clock) {}
    // Between two commits of the backup; `server` runs on that host.
    void acknowledged(const backup::State &backup, const server::State &server);
    // The scheduler has committed what it knows.
    void forgotten(const backup::State &backup, const core::State &scheduler);
    // The scheduler sends this server its configuration: it believes what it said.
    void believed(const core::State &scheduler, const server::State &server);

private:
    Clock &clock_;
};

}  // namespace dcs::sim
