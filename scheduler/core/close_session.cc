// d_close_ses and d_clean_ses.
#include <algorithm>

#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

std::vector<GrainKey> running_grains(const State &state, const SessionKey &key) {
    std::vector<GrainKey> found;
    if (state.session(key)->counts[static_cast<int>(GrainStatus::running)] == 0) return found;
    for (const auto &there : state.running) {
        auto it = there.lower_bound(GrainKey{key, 0});
        for (; it != there.end() && it->session == key; ++it) found.push_back(*it);
    }
    std::sort(found.begin(), found.end());
    return found;
}

// Withdrawn, they are recorded as ready, first in their queue in the order of their numbers.
void withdraw_running(Draft &d, const SessionKey &key) {
    std::vector<GrainKey> running = running_grains(d.state, key);
    std::set<HostId> hosts;
    for (auto it = running.rbegin(); it != running.rend(); ++it) {
        note_move(d, *it, MoveReason::session_closed);
        requeue_front(d, *it, true);
    }
    for (const GrainKey &grain : running) {
        const Grain &g = *d.state.grain(grain);
        d.withdraw(g.runs_on(), grain, g.lease, true, "the session was closed");
        hosts.insert(g.runs_on());
    }
    for (const HostId id : hosts) d.follow_up(FillHost{id});
}

void terminate(Draft &d, const SessionKey &key, std::int32_t acknowledged) {
    dismiss_waiters(d, key, fail(Code::session_closed, "session " + to_text(key) + " was closed"));
    SessionInfo &info = d.info(key);
    DCS_REQUIRE(info.status == SessionStatus::active, "a session is closed once");
    info.status = SessionStatus::terminated;
    info.token = TokenHash{};
    info.sent = std::max(info.sent, std::min(acknowledged, info.result_count));
    info.shown = std::max(info.shown, info.sent);
    withdraw_running(d, key);
    d.event("session " + to_text(key) + " closed");
}

// So that programs that choose a number take a later one: in its user's notes this one means what is removed now. And
// for lease_floor().
void keep_last(Draft &d, const SessionKey &key, Incarnation lease) {
    const std::int32_t number = last_number_of(d.state, key.user);
    const auto leases = d.state.last_leases.find(key.user);
    const Incarnation last = leases == d.state.last_leases.end() ? 0 : leases->second;
    if (key.number > number || lease > last)
        d.change(SetLastNumber{key.user, std::max(number, key.number), std::max(last, lease)});
}

void erase_closed(Draft &d, const SessionKey &key, const Session &session, const char *why) {
    raise_fences(d, key, session);
    d.change(EraseSession{key});
    d.event("session " + to_text(key) + " removed" + why);
}

}  // namespace

void raise_fences(Draft &d, const SessionKey &key, const Session &session) {
    Incarnation last = 0;
    for (const auto &[number, g] : session.grains) last = std::max(last, g.incarnation);
    for (std::size_t i = 0; i < d.state.hosts.size(); ++i) {
        const Host &host = d.state.hosts[i];
        if (host.conn != no_connection && host.fence < last) d.host(static_cast<HostId>(i)).fence = last;
    }
    keep_last(d, key, last);
}

void close_session(Draft &d, const Caller &caller, const wire::CloseSession &call) {
    const bool secure = !call.user.empty();
    const SessionKey key{secure ? call.user : caller.user, call.number};
    const Session *session = d.state.session(key);
    if (!session) return d.refuse(caller, missing_session(d.state, key));
    const bool holder = caller.has_token && session->info.token == caller.token;
    if (session->info.status == SessionStatus::active) {
        if (!secure && !holder) return d.refuse(caller, taken_session(d.state, key, caller));
        terminate(d, key, call.acknowledged);
    } else if (holder) {
        d.info(key).token = TokenHash{};  // the end of a replay
    }
    d.reply(caller, wire::Done{});
}

void clean_session(Draft &d, const Caller &caller, const wire::CleanSession &call) {
    const bool secure = !call.user.empty();
    const SessionKey key{secure ? call.user : caller.user, call.number};
    if (d.state.set_aside.count(key) != 0) {
        keep_last(d, key, 0);
        d.change(EraseDamaged{key});
        d.reply(caller, wire::Done{});
        return d.event("damaged session " + to_text(key) + " removed");
    }
    const Session *session = d.state.session(key);
    if (!session) return d.refuse(caller, missing_session(d.state, key));
    if (session->info.status == SessionStatus::active)
        return d.refuse(caller, fail(Code::session_active,
                                     "session " + to_text(key) + " is active: only a closed session can be removed"));
    erase_closed(d, key, *session, "");
    d.reply(caller, wire::Done{});
}

bool is_old(const State &state, const Session &session, std::int64_t wall_ms) {
    const std::int64_t age_ms = std::int64_t{1000} * state.policy.session_age_s, since = session.info.closed_ms;
    return age_ms > 0 && since > 0 && session.info.status == SessionStatus::terminated && session.damaged.empty() &&
           wall_ms - since > age_ms;
}

void remove_old(Draft &d, const RemoveOld &in) {
    if (const Session *session = d.state.session(in.session); session && is_old(d.state, *session, in.wall_ms))
        erase_closed(d, in.session, *session, ": it was closed for the policy's session_age");
}

std::optional<wire::ProblemRow> held_back(const State &state, std::int64_t wall_ms, Duration wait) {
    const auto old = std::count_if(state.sessions.begin(), state.sessions.end(),
                                   [&](const auto &entry) { return is_old(state, entry.second, wall_ms); });
    if (old == 0) return {};
    const auto minutes = (static_cast<std::int64_t>(wait.seconds()) + 59) / 60;
    return wire::ProblemRow{
        "policy session_age", "",
        "removes " + std::to_string(old) + (old == 1 ? " closed session" : " closed sessions") +
            " with all results in " +
            (minutes > 120 ? std::to_string((minutes + 30) / 60) + " h" : std::to_string(minutes) + " min"),
        "their users: a removed session does not come back",
        "if that is a mistake, correct the policy and run `dcs reload`, or this host's clock; "
        "`dcs session export` saves a session"};
}

}  // namespace dcs::core
