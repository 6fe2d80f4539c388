// d_gwait (C8). The request names the index it wants; that acknowledges everything below.
#include <algorithm>

#include "base/planted.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

// Parked calls of one session; a control program needs one per thread.
constexpr std::size_t waiters_per_session = 1024;

struct Answer {
    std::int32_t index = -1;  // of the result, if there is one
    Status status;            // else why there never will be; ok: not yet
};

Answer answer_for(const State &state, const SessionKey &key, std::int32_t next) {
    const Session &session = *state.session(key);
    for (std::int32_t i = next; i < session.info.result_count; ++i)
        if (session.results[static_cast<std::size_t>(i)] >= 0) return {i, Status::ok()};
    const std::string name = "session " + to_text(key);
    if (in_replay(session.info) && session.damaged.empty())
        return {-1, fail(Code::replay_end, name + " is closed; its record has no further result")};
    const auto count = [&](GrainStatus s) { return session.counts[static_cast<int>(s)]; };
    if (count(GrainStatus::running) > 0) return {};
    if (count(GrainStatus::ready) == 0 && !session.damaged.empty())
        return {-1, missing_grain(state, GrainKey{key, session.damaged.begin()->first})};
    if (count(GrainStatus::ready) == 0)
        return {-1, fail(Code::nothing_left,
                         name + " has no unfinished grain and every result was handed out")};
    if (std::string why = why_none_can_run(state, key); !why.empty())
        return {-1, fail(Code::cannot_run, why)};
    return {};
}

void hand_out(Draft &d, const SessionKey &key, const Caller &to, std::int32_t index) {
    const Session &session = *d.state.session(key);
    const GrainKey grain{key, session.results[static_cast<std::size_t>(index)]};
    const Grain &g = *d.state.grain(grain);
    wire::GrainResult head;
    head.grain = grain.grain;
    head.completed = session.counts[static_cast<int>(GrainStatus::finished)];
    head.sent = index + 1;
    head.signal = g.signal;
    head.code = g.exit_code;
    head.usage = total_usage(g);
    head.out_length = g.out_length;
    head.err_length = g.err_length;
    d.effect(ReplyResult{to.conn, to.request, grain, head});
    if (planted("core.sent_too_early")) d.info(key).sent = std::max(d.info(key).sent, index + 1);
    if (index >= session.info.shown) d.info(key).shown = std::max(d.info(key).shown, index + 1);
}

void park(Draft &d, const Caller &caller, const SessionKey &key, std::int32_t next) {
    std::vector<Waiter> &waiters = d.waiters(key);
    for (Waiter &w : waiters) {
        if (w.conn != caller.conn || w.request != caller.request) continue;
        w.next = next;
        return;
    }
    if (waiters.size() >= waiters_per_session)
        return d.refuse(caller, fail(Code::limit, "too many calls of session " + to_text(key) +
                                                      " wait already"));
    waiters.push_back(Waiter{caller.conn, caller.request, next});
}

}  // namespace

void wait_grain(Draft &d, const Caller &caller, const wire::Gwait &call) {
    const Result<SessionKey> held = held_session(d.state, caller, call.session);
    if (!held) return d.refuse(caller, held.status());
    const SessionInfo &info = d.state.session(*held)->info;
    if (call.next < 0 || call.next > info.result_count)
        return d.refuse(caller,
                        fail(Code::invalid, "result " + std::to_string(call.next) +
                                                " was asked for, session " + to_text(*held) +
                                                " has " + std::to_string(info.result_count)));
    if (!in_replay(info) && call.next > info.sent) {
        SessionInfo &edited = d.info(*held);
        edited.sent = call.next;
        edited.shown = std::max(edited.shown, call.next);
    }
    const Answer answer = answer_for(d.state, *held, call.next);
    if (answer.index >= 0) return hand_out(d, *held, caller, answer.index);
    if (!answer.status) return d.refuse(caller, answer.status);
    if (call.block) return park(d, caller, *held, call.next);
    d.refuse(caller, fail(Code::nothing_yet,
                          "no further grain of session " + to_text(*held) + " has finished yet"));
}

void answer_waiters(Draft &d, const AnswerWaiters &in) {
    const Session *session = d.state.session(in.session);
    if (!session || session->waiters.empty()) return;
    std::vector<Waiter> left;
    for (const Waiter &w : session->waiters) {
        const Answer answer = answer_for(d.state, in.session, w.next);
        Caller to;
        to.conn = w.conn;
        to.request = w.request;
        if (answer.index >= 0)
            hand_out(d, in.session, to, answer.index);
        else if (!answer.status)
            d.refuse(to, answer.status);
        else
            left.push_back(w);
    }
    if (left.size() != session->waiters.size()) d.waiters(in.session) = std::move(left);
}

void wake_waiters(Draft &d, const SessionKey &key) {
    const Session *session = d.state.session(key);
    if (session && !session->waiters.empty()) d.follow_up(AnswerWaiters{key});
}

void dismiss_waiters(Draft &d, const SessionKey &key, const Status &why) {
    const Session *session = d.state.session(key);
    if (!session || session->waiters.empty()) return;
    for (const Waiter &w : session->waiters) {
        Caller to;
        to.conn = w.conn;
        to.request = w.request;
        d.refuse(to, why);
    }
    d.waiters(key).clear();
}

}  // namespace dcs::core
