// A command restarts a grain from its last checkpoint: its failures are forgotten.
#include <algorithm>

#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

void forgive(Draft &d, const GrainKey &key) {
    Grain &g = d.grain(key);
    g.course.edit().failures = 0;
    Recent &recent = g.recent.edit();
    recent.failures_there = 0;
    recent.failed_on = no_host;
    g.course.edit().nogo = std::vector<HostId>();
    rest_no_more(d, key);
    forgive_program(d, {key.session.user, g.program});
    for (std::size_t i = 0; i < d.state.hosts.size(); ++i) {
        const Host &host = d.state.hosts[i];
        const auto is_held = [&](const HeldBack &h) { return h.key == key; };
        const bool held = std::any_of(host.held_back.begin(), host.held_back.end(), is_held);
        if (!held) continue;
        Host &edited = d.host(static_cast<HostId>(i));
        edited.held_back.erase(std::remove_if(edited.held_back.begin(), edited.held_back.end(), is_held),
                               edited.held_back.end());
    }
}

// It comes back with a checkpoint where its host can be reached; otherwise from the last one, and what
// that host still says of it does not count.
void withdraw_or_move(Draft &d, const GrainKey &key, const Grain &old, const std::string &why) {
    note_move(d, key, MoveReason::restarted, why);
    if (d.state.host(old.runs_on())->conn != no_connection)
        return d.withdraw(old.runs_on(), key, old.lease, false, why);
    requeue_front(d, key, false);
    d.follow_up(PlaceGrain{key});
}

}  // namespace

void restart_grain(Draft &d, const Caller &caller, const wire::RestartGrain &call) {
    const GrainKey key{{call.user.empty() ? caller.user : call.user, call.session}, call.grain};
    const Session *session = d.state.session(key.session);
    if (!session) return d.refuse(caller, missing_session(d.state, key.session));
    const Grain *grain = d.state.grain(key);
    if (!grain) return d.refuse(caller, missing_grain(d.state, key));
    if (call.and_after) return forget_after(d, caller, key, call.forgets, call.erases);
    if (session->info.status == SessionStatus::terminated)
        return d.refuse(caller, fail(Code::session_closed, "session " + to_text(key.session) +
                                                               " is closed: nothing of it runs until it is reopened"));
    if (grain->is_over())
        return d.refuse(caller, fail(Code::refused, "grain " + to_text(key) + " is " + name_of(grain->status()) +
                                                        ", which is final: submit it again under another number"));
    forgive(d, key);
    const std::string why = "restarted by " + caller.user;
    if (grain->status() == GrainStatus::running) withdraw_or_move(d, key, *grain, why);
    else d.follow_up(PlaceGrain{key});
    d.reply(caller, wire::Done{});
    d.event("grain " + to_text(key) + " " + why);
}

}  // namespace dcs::core
