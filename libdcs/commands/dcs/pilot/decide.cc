#include "decide.h"

#include <algorithm>

namespace dcs::commands {
namespace {

constexpr double connects_within_s = 60;
constexpr Duration first_pause = seconds(30), longest_pause = seconds(3600);

// A job that the engine still cleans up after counts no more: while the node's daemon is away, that can take hours.
const EngineJob *live_job(const Pilot &pilot) {
    const auto live =
        std::find_if(pilot.jobs.begin(), pilot.jobs.end(), [](const EngineJob &job) { return !job.over; });
    return live == pilot.jobs.end() ? nullptr : &*live;
}

// Grains that a pilot with a job will take: one that waits, all that it has slots for; one that is held or will leave
// soon, none.
std::int64_t room_of(const Pilot &pilot, double margin_s) {
    const EngineJob *live = live_job(pilot);
    if (live == nullptr || pilot.row.drained) return 0;
    const EngineJob &job = *live;
    if (job.held) return 0;
    if (!job.waits && job.left_s >= 0 && job.left_s < margin_s) return 0;
    if (!job.waits && !pilot.row.connected && job.used_s > connects_within_s) return 0;  // it has lost its server
    return std::max(0, pilot.row.slots - (pilot.row.connected ? pilot.row.running : 0));
}

// A server that is still connected without a job is one that has lost it: two of one name would replace each other.
bool is_free(const Pilot &pilot) {
    return live_job(pilot) == nullptr && !pilot.row.connected && !pilot.row.drained && pilot.row.slots > 0;
}

}  // namespace

PilotPlan plan_pilots(const std::vector<Pilot> &pilots, std::int64_t ready, const PilotLimits &limits) {
    PilotPlan plan;
    std::size_t jobs = 0, waiting = 0;
    std::int64_t unserved = ready;
    for (const Pilot &pilot : pilots) {
        unserved -= room_of(pilot, limits.margin_s);
        for (const EngineJob &job : pilot.jobs) {
            jobs += !job.over;
            waiting += job.waits;
            if (job.waits && ready == 0) plan.cancel.push_back(job);
        }
    }
    for (std::size_t i = 0; i < pilots.size() && unserved > 0; ++i) {
        if (jobs >= limits.most || waiting >= limits.waiting) break;
        if (!is_free(pilots[i])) continue;
        if (limits.only_named && pilots[i].row.users.empty()) continue;
        plan.submit.push_back(i);
        ++jobs;
        ++waiting;
        unserved -= pilots[i].row.slots;
    }
    return plan;
}

void Fruitless::pause(Instant now) {
    Duration pause = first_pause;
    for (int i = 0; i < in_a_row_ && pause < longest_pause; ++i) pause = pause * 2;
    ++in_a_row_;
    until_ = now + std::min(pause, longest_pause);
}

bool Fruitless::look(const Pilot &pilot, bool cancelled, Instant now) {
    const auto then = launched_then_.find(pilot.row.name);
    if (then == launched_then_.end()) return false;
    const bool fruitful = pilot.row.launched > then->second;
    if (fruitful) {
        in_a_row_ = 0;
        until_ = Instant{};
    }
    if (live_job(pilot) != nullptr) return false;
    launched_then_.erase(then);
    if (fruitful || cancelled) return false;
    pause(now);
    return true;
}

}  // namespace dcs::commands
