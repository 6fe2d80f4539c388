// d_open_ses, d_resume_ses, d_reopen_ses, replay of a terminated session included.
#include "scheduler/core/ahead.h"
#include "scheduler/core/decisions.h"
#include "scheduler/state/seniority.h"

namespace dcs::core {
namespace {

struct Opening {
    Draft &d;
    const Caller &caller;
    const wire::OpenSession &call;
    SessionKey key;
    const AuthEntry &auth;
};

void answer(Opening &o, wire::OpenedAs as, std::int32_t sent) {
    const Session *session = o.d.state.session(o.key);
    const std::int32_t completed = session ? session->counts[static_cast<int>(GrainStatus::finished)] : 0;
    o.d.reply(o.caller, wire::OpenReply{as, sent, completed, session ? session->info.result_count : 0});
}

// The session is bound to the caller from here on, and the caller's token does not age.
void bind(Opening &o, SessionInfo &info) {
    info.token = o.caller.token;
    info.open_request = o.caller.request;
    info.run = o.call.run;
    info.resumable = o.call.mode != wire::OpenMode::open;
    AuthEntry used = o.auth;
    used.stamp_s = 0;
    if (used != o.auth) o.d.change(SetAuth{o.caller.token, std::move(used)});
}

// One more active session.
bool within_quota(Opening &o) {
    const Status s = check_session_quota(o.d.state, o.key.user);
    if (!s) o.d.refuse(o.caller, s);
    return bool(s);
}

void create(Opening &o) {
    if (!within_quota(o)) return;
    if (Status s = check_stored(o.d.state, o.key.user, o.caller.privileged, on_disk(1)); !s)
        return o.d.refuse(o.caller, s);
    SessionInfo &info = o.d.info(o.key);
    info.seniority = seniority_of(o.d.state.next_seniority, o.call.nice);
    info.ident = o.auth.ident;
    info.command = o.call.command;
    info.label = o.call.label;
    bind(o, info);
    answer(o, wire::OpenedAs::fresh, 0);
    o.d.event("session " + to_text(o.key) + " opened by " + info.ident);
}

void take_over(Opening &o, const Session &session) {
    const SessionInfo &old = session.info;
    SessionInfo &info = o.d.info(o.key);
    bind(o, info);
    if (old.token != o.caller.token) dismiss_waiters(o.d, o.key, taken_over(o.key, info));
    // Its own threads still get what they wait for, but it starts again.
    else if (o.call.sent_reset && !session.waiters.empty())
        for (Waiter &w : o.d.waiters(o.key)) w.acknowledges = 0;
    if (o.call.sent_reset) info.sent = 0;
    answer(o, wire::OpenedAs::resumed, info.sent);
    try_all_again(o.d, o.key);
    o.d.event("session " + to_text(o.key) + " resumed by " + info.ident);
}

// Nothing of the session moves, neither `sent` nor a grain; only who may read the record changes.
void replay(Opening &o) {
    bind(o, o.d.info(o.key));
    answer(o, wire::OpenedAs::replay, 0);
    o.d.event("session " + to_text(o.key) + " replayed by " + o.auth.ident);
}

void reopen(Opening &o) {
    if (!within_quota(o)) return;
    SessionInfo &info = o.d.info(o.key);
    info.status = SessionStatus::active;
    bind(o, info);
    if (o.call.sent_reset) info.sent = 0;
    answer(o, wire::OpenedAs::resumed, info.sent);
    try_all_again(o.d, o.key);
    for (const auto &[host_class, hosts] : o.d.state.open_hosts)
        for (const HostId id : hosts) o.d.follow_up(FillHost{id});
    o.d.event("session " + to_text(o.key) + " reopened by " + info.ident);
}

// The call that opened the session comes again because its reply was lost.
bool is_repetition(const Opening &o, const SessionInfo &info) {
    return info.open_request == o.caller.request && info.token == o.caller.token;
}

void repeat(Opening &o, const Session &session) {
    const SessionInfo &info = session.info;
    if (info.status == SessionStatus::terminated) return answer(o, wire::OpenedAs::replay, 0);
    const bool fresh =
        o.call.mode == wire::OpenMode::open || (o.call.mode == wire::OpenMode::resume && session.grains.empty());
    answer(o, fresh ? wire::OpenedAs::fresh : wire::OpenedAs::resumed, info.sent);
}

void open_terminated(Opening &o, const Session &session) {
    const SessionInfo &info = session.info;
    const std::string name = "session " + to_text(o.key);
    if (o.call.mode == wire::OpenMode::open)
        return o.d.refuse(o.caller, fail(Code::session_closed, name + " exists and is closed"));
    if (info.ident != o.auth.ident) return o.d.refuse(o.caller, taken_session(o.d.state, o.key, o.caller));
    const bool for_failed = o.call.for_failed && o.call.sent_reset && session.failed > 0;
    if (o.call.mode == wire::OpenMode::reopen || for_failed) return reopen(o);
    if (o.call.sent_reset) return replay(o);
    o.d.refuse(o.caller, fail(Code::session_closed, name + " is closed; resume it with sent_reset to replay it"));
}

void open_active(Opening &o, const Session &session) {
    if (o.call.mode != wire::OpenMode::resume)
        return o.d.refuse(o.caller, fail(Code::session_active, "session " + to_text(o.key) + " is active"));
    if (session.info.ident != o.auth.ident) return o.d.refuse(o.caller, taken_session(o.d.state, o.key, o.caller));
    take_over(o, session);
}

}  // namespace

namespace {

Status bad_nice() {
    return fail(Code::invalid, "a session's nice value must be from 0 to " + std::to_string(wire::most_nice));
}

}  // namespace

Status bad_session_number(std::int32_t number) {
    return fail(Code::invalid, "the session number is " + std::to_string(number) + ": it must be 0 or more");
}

// Its place among the others follows from its seniority, which is derived again.
void set_session(Draft &d, const Caller &caller, const wire::SetSession &call) {
    const SessionKey key{call.user.empty() ? caller.user : call.user, call.number};
    const Session *session = d.state.session(key);
    if (!session) return d.refuse(caller, missing_session(d.state, key));
    if (call.nice < -1 || call.nice > wire::most_nice) return d.refuse(caller, bad_nice());
    if (session->info.status != SessionStatus::active && call.nice >= 0)
        return d.refuse(caller, fail(Code::session_closed,
                                     "session " + to_text(key) + " is closed: none of its grains waits for a slot"));
    SessionInfo &info = d.info(key);
    const std::uint64_t seniority = call.nice < 0 ? info.seniority : seniority_of(age_in(info.seniority), call.nice);
    if (seniority != info.seniority) {
        info.seniority = seniority;
        recall_of(d, key, "has another place among the others");
        for (const auto &[shape, queue] : session->ready) d.follow_up(PlaceGrain{{key, queue.grains.front().grain}});
    }
    if (call.set_label) info.label = call.label;
    d.reply(caller, wire::Done{});
    if (call.nice >= 0) d.event("session " + to_text(key) + " has nice value " + std::to_string(call.nice));
}

void open_session(Draft &d, const Caller &caller, const wire::OpenSession &call) {
    if (call.number < 0) return d.refuse(caller, bad_session_number(call.number));
    if (call.nice < 0 || call.nice > wire::most_nice) return d.refuse(caller, bad_nice());
    Opening o{d, caller, call, SessionKey{caller.user, call.number}, d.state.auth.at(caller.token)};
    const Session *session = d.state.session(o.key);
    if (!session && (call.mode == wire::OpenMode::reopen || d.state.set_aside.count(o.key) != 0))
        return d.refuse(caller, missing_session(d.state, o.key));
    if (!session) return create(o);
    if (is_repetition(o, session->info)) return repeat(o, *session);
    if (session->info.status == SessionStatus::terminated) return open_terminated(o, *session);
    open_active(o, *session);
}

}  // namespace dcs::core
