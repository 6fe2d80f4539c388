// d_gkill: once acknowledged, the grain never runs again and no unreported result comes of it.
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

void kill(Draft &d, const GrainKey &key) {
    const Grain &old = *d.state.grain(key);
    Grain &g = d.grain(key);
    if (old.ahead) g.course.edit().skipped += 1;  // it was shown as ready, so it has never run
    g.become(Killed{d.state.session(key.session)->info.shown});
    if (old.status() == GrainStatus::running) {
        d.withdraw(old.runs_on(), key, old.lease, true, "killed by its control program");
        d.follow_up(FillHost{old.runs_on()});
    }
    if (old.status() == GrainStatus::ready) g.lessee = no_host;
    wake_waiters(d, key.session);
    d.event("grain " + to_text(key) + " killed");
}

// Nothing is known of it but its number; what its tree still holds goes with the tree.
void kill_damaged(Draft &d, const Caller &caller, const GrainKey &key) {
    d.new_grain(key).phase = Killed{};
    wake_waiters(d, key.session);
    d.reply(caller, wire::Done{});
    d.event("grain " + to_text(key) + ", damaged, killed");
}

// A result that was handed out stays in the order: a replay must meet it again.
bool is_settled(const Session &session, const Grain &g) {
    if (g.status() == GrainStatus::killed) return true;
    return g.status() == GrainStatus::finished &&
           (in_replay(session.info) || g.as<Finished>().result_index < session.info.shown);
}

}  // namespace

void kill_grain(Draft &d, const Caller &caller, const wire::Gkill &call) {
    SessionKey owner{call.user, call.session};
    if (call.user.empty()) {
        const Result<SessionKey> held = held_session(d.state, caller, call.session);
        if (!held) return d.refuse(caller, held.status());
        owner = *held;
    }
    const Session *session = d.state.session(owner);
    if (!session) return d.refuse(caller, missing_session(d.state, owner));
    const GrainKey key{owner, call.grain};
    const Grain *grain = d.state.grain(key);
    if (!grain && session->damaged.count(key.grain) != 0) return kill_damaged(d, caller, key);
    if (!grain) return d.refuse(caller, missing_grain(d.state, key));
    if (is_settled(*session, *grain)) return d.reply(caller, wire::Done{});
    if (session->info.status == SessionStatus::terminated) {
        const bool replaying = call.user.empty();
        return d.refuse(caller, fail(replaying ? Code::replay_end : Code::session_closed,
                                     "session " + to_text(owner) + " is closed and grain " +
                                         std::to_string(call.grain) + " was not killed in it"));
    }
    kill(d, key);
    d.reply(caller, wire::Done{});
}

}  // namespace dcs::core
