// A grain server in a batch job: it leaves before the job's limit, when it has had no grain for a while, and when the
// engine tells the job to end. Its grains continue in another job, from their last checkpoints.
#include <algorithm>

#include "base/planted.h"
#include "base/require.h"
#include "grainserver/core/turn.h"

namespace dcs::server {
namespace {
constexpr std::int32_t signal_term = 15;

Instant idle_until(const State &state) {
    const Job &job = state.job;
    return job.idle.ns > 0 && state.grains.empty() ? job.idle_since + job.idle : Instant::never();
}
}  // namespace

void ask_to_leave(Turn &t, const GrainId &id, Grain &g) {
    DCS_REQUIRE(!t.state.job.leaving.empty(), "the server leaves");
    if (g.ending == Ending::none) ask_to_end(t, id, g, t.state.job.leaving, wire::GivenBack::shut_out);
}

Instant leave_time(const State &state) {
    return state.job.leaving.empty() ? std::min(state.job.leave_at, idle_until(state)) : Instant::never();
}

bool has_left(const State &state) { return !state.job.leaving.empty() && state.grains.empty(); }

void leave(Turn &t, const std::string &why) {
    DCS_REQUIRE(!why.empty(), "a server that leaves has a reason");
    if (!t.state.job.leaving.empty()) return;
    t.state.job.leaving = t.state.courtesy.shut = why;
    t.log(Level::info, "leaving: " + why);
    const std::string text = "this host accepts no grains now: " + why;
    std::vector<GrainId> queued;
    for (const auto &[id, g] : t.state.grains)
        if (g.phase == Phase::queued) queued.push_back(id);
    for (const GrainId &id : queued) drop_unstarted(t, id, Code::limit, text);
    t.for_each([&](const GrainId &id, Grain &g) {
        if (!has_process(g) || g.ending != Ending::none) return;
        if (waits_there(t.state, g)) call_back(t, id, g, Code::limit, text);
        else ask_to_leave(t, id, g);
    });
    if (t.state.with_scheduler()) t.emit(Gauge{});
}

void job_goes_on(Turn &t) {
    Job &job = t.state.job;
    if (!t.state.grains.empty()) job.idle_since = t.now;
    if (!job.leaving.empty()) return;
    if (t.now >= job.leave_at && !planted("server.stays_to_the_limit")) leave(t, "the batch job of this host ends");
    else if (t.now >= idle_until(t.state)) leave(t, "no grain came, so the batch job of this host ends");
}

// The engine's signal may reach the grains before this server has asked them to end.
bool is_engines(const State &state, const Grain &g) {
    DCS_REQUIRE(g.exit.has_value(), "it has ended");
    const bool own = g.ending == Ending::none || g.ending == Ending::asked;
    return state.job.part_of && own && g.exit->known && g.exit->signal == signal_term;
}

}  // namespace dcs::server
