#pragma once
// Which jobs to submit and which to cancel. Pure.
#include <map>
#include <string>
#include <vector>

#include "base/instant.h"
#include "engine.h"
#include "wire/message.h"

namespace dcs::commands {

struct PilotLimits {
    std::size_t most = 1;     // jobs at a time
    std::size_t waiting = 4;  // of these, in the engine's queue
    double margin_s = 60;     // before a job's limit its server takes no more grains
    // Grains would run under the account of these jobs: none for a pilot whose line names no users, which may have lost
    // them since this command began.
    bool only_named = true;
};

struct Pilot {
    wire::HostRow row;
    std::vector<EngineJob> jobs;  // usually none or one
};

struct PilotPlan {
    std::vector<std::size_t> submit;  // places in the list of pilots
    std::vector<EngineJob> cancel;
};

// `ready`: grains that wait in the pool.
PilotPlan plan_pilots(const std::vector<Pilot> &pilots, std::int64_t ready, const PilotLimits &limits);

// Submissions pause after jobs that ran no grain though grains waited, and after refused submissions: for half a
// minute, doubled each time up to an hour, until a grain starts on a pilot.
class Fruitless {
public:
    void submitted(const std::string &host, std::int64_t launched) { launched_then_[host] = launched; }
    void refused(Instant now) { pause(now); }
    // True if the job of that host has just ended without a grain. `cancelled`: by ourselves.
    bool look(const Pilot &pilot, bool cancelled, Instant now);
    bool pauses(Instant now) const { return now < until_; }
    Instant until() const { return until_; }

private:
    void pause(Instant now);
    std::map<std::string, std::int64_t> launched_then_;  // by host, of those with a job
    int in_a_row_ = 0;
    Instant until_{};
};

}  // namespace dcs::commands
