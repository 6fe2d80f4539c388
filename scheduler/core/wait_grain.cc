// d_gwait and d_gwait_many. The request names the index it wants; that acknowledges everything below.
#include <algorithm>
#include <optional>
#include <set>

#include "base/limits.h"
#include "base/load_limits.h"
#include "base/planted.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

// The first result from `next` on that is wanted; -1: there is none.
std::int32_t result_from(Draft &d, const Session &session, std::int32_t next, std::int32_t failed_from) {
    std::size_t first = session.results.first_from(static_cast<std::size_t>(next)), passed = 0;
    for (const std::size_t end = std::min(session.results.size(), static_cast<std::size_t>(failed_from));
         first < end && session.grains.at(session.results[first]).has_failed(); ++passed)
        first = session.results.first_from(first + 1);
    d.looked_at(passed);
    return first < session.results.size() ? static_cast<std::int32_t>(first) : -1;
}

// Why there never will be another result, which is the same for all who wait; ok: not yet.
Status no_more(Draft &d, const SessionKey &key) {
    const State &state = d.state;
    const Session &session = *state.session(key);
    const std::string name = "session " + to_text(key);
    if (in_replay(session.info) && session.damaged.empty())
        return fail(Code::replay_end, name + " is closed, and its record has no further result");
    const auto count = [&](GrainStatus s) { return session.counts[static_cast<int>(s)]; };
    if (count(GrainStatus::running) > 0) return {};
    if (count(GrainStatus::ready) == 0 && !session.damaged.empty())
        return missing_grain(state, GrainKey{key, session.damaged.begin()->first});
    if (count(GrainStatus::ready) == 0)
        return fail(Code::nothing_left, name + " has no unfinished grain and every result was handed out");
    std::size_t looked_at = 0;
    const std::string why = why_none_can_run(state, key, &looked_at);
    d.looked_at(looked_at);
    return why.empty() ? Status::ok() : fail(Code::cannot_run, why);
}

wire::GrainResult result_at(const Session &session, std::int32_t index, std::int32_t returned) {
    wire::GrainResult head;
    head.grain = session.results[static_cast<std::size_t>(index)];
    const Grain &g = session.grains.at(head.grain);
    head.completed = session.counts[static_cast<int>(GrainStatus::finished)];
    head.sent = index + 1;
    head.signal = g.as<Finished>().signal;
    head.code = g.as<Finished>().exit_code;
    head.usage = total_usage(g);
    head.out_length = g.course->out_length;
    head.err_length = g.course->err_length;
    head.returned = returned;
    return head;
}

// The result of this index and those that follow, but no more than is wanted, or than is read at once.
std::vector<wire::GrainResult> results_from(Draft &d, const Session &session, std::int32_t index, const Waiter &to) {
    std::vector<wire::GrainResult> heads;
    std::uint64_t bytes = 0;
    std::int32_t returned = returned_below(session, index);
    for (; index >= 0 && heads.size() < static_cast<std::size_t>(to.most);
         index = result_from(d, session, index + 1, to.failed_from)) {
        wire::GrainResult head = result_at(session, index, ++returned);
        bytes += head.out_length + head.err_length;
        if (bytes > limits::batch_output_bytes && !heads.empty()) break;
        heads.push_back(std::move(head));
    }
    return heads;
}

void hand_out(Draft &d, const SessionKey &key, const Waiter &to, std::int32_t index) {
    const Session &session = *d.state.session(key);
    DCS_REQUIRE(index >= 0 && session.results.any_at(static_cast<std::size_t>(index)), "a result is handed out");
    std::int32_t shown = index + 1;
    if (to.most == 0) {
        const wire::GrainResult head = result_at(session, index, returned_below(session, index) + 1);
        d.effect(ReplyResult{to.conn, to.request, GrainKey{key, head.grain}, head});
    } else {
        std::vector<wire::GrainResult> heads = results_from(d, session, index, to);
        DCS_REQUIRE(!heads.empty(), "the result that is there is handed out");
        shown = heads.back().sent;
        d.effect(ReplyResults{to.conn, to.request, key, std::move(heads)});
    }
    if (planted("core.sent_too_early")) d.info(key).sent = std::max(d.info(key).sent, shown);
    if (shown > session.info.shown) d.info(key).shown = std::max(d.info(key).shown, shown);
}

constexpr const char *too_many_waits =
    " calls waiting for results, which is the limit: wait until some are answered, or take many results with one call "
    "(d_gwait_many)";

void park(Draft &d, const Caller &caller, const SessionKey &key, const Waiter &waiter) {
    std::vector<Waiter> &waiters = d.waiters(key);
    for (Waiter &w : waiters) {
        if (w.conn != waiter.conn || w.request != waiter.request) continue;
        w = waiter;
        return;
    }
    const auto parked = d.state.parked.find(key.user);
    const std::int64_t of_user = parked == d.state.parked.end() ? 0 : parked->second;
    const bool session_full = waiters.size() >= limits::parked_waits;
    if (session_full || of_user >= static_cast<std::int64_t>(limits::parked_waits_per_user))
        return d.refuse(caller, fail(Code::limit, (session_full ? "session " + to_text(key) : key.user) + " has " +
                                                      std::to_string(session_full ? std::ssize(waiters) : of_user) +
                                                      too_many_waits));
    waiters.push_back(waiter);
}

// A program that is run again, and has the results of all that it has submitted, is where its earlier run found no
// result left, if what is left was submitted only after that one had taken as many.
bool earlier_run_had_no_more(Draft &d, const Session &session, std::int32_t next, std::int32_t index) {
    if (index >= 0) return session.grains.at(session.results[static_cast<std::size_t>(index)]).known >= next;
    const auto count = [&](GrainStatus s) { return session.counts[static_cast<int>(s)]; };
    if (in_replay(session.info) || count(GrainStatus::ready) + count(GrainStatus::running) == 0) return false;
    const auto later = std::find_if(session.grains.begin(), session.grains.end(), [next](const auto &entry) {
        const GrainStatus status = entry.second.status();
        return (status == GrainStatus::ready || status == GrainStatus::running) && entry.second.known < next;
    });
    d.looked_at(static_cast<std::size_t>(std::distance(session.grains.begin(), later)));
    return later == session.grains.end();
}

void wait(Draft &d, const Caller &caller, std::int32_t number, const Waiter &call, bool block, bool has_all) {
    const Result<SessionKey> held = held_session(d.state, caller, number);
    if (!held) return d.refuse(caller, held.status());
    const SessionInfo &info = d.state.session(*held)->info;
    if (call.next < 0 || call.next > info.result_count)
        return d.refuse(caller,
                        fail(Code::invalid, "result " + std::to_string(call.next) + " was requested, but session " +
                                                to_text(*held) + " has " + std::to_string(info.result_count)));
    if (call.failed_from < 0)
        return d.refuse(caller, fail(Code::invalid, "the index up to which failures are not wanted is negative"));
    const std::int32_t index = result_from(d, *d.state.session(*held), call.next, call.failed_from);
    if (has_all && earlier_run_had_no_more(d, *d.state.session(*held), call.next, index)) {
        acknowledge(d, *held, call.acknowledges);
        return d.refuse(caller, fail(Code::nothing_left, "every grain that this run has submitted was reported"));
    }
    const Status why = index < 0 ? no_more(d, *held) : Status::ok();
    if (index < 0 && why && block) return park(d, caller, *held, call);
    acknowledge(d, *held, call.acknowledges);
    if (index >= 0) return hand_out(d, *held, call, index);
    if (!why) return d.refuse(caller, why);
    d.refuse(caller, fail(Code::nothing_yet, "no further grain of session " + to_text(*held) + " has finished yet"));
}

}  // namespace

// A parked call says so only when it is over, together with what it waited for: a commit for this alone would keep
// others waiting. It is over as well when its connection breaks.
void acknowledge(Draft &d, const SessionKey &key, std::int32_t next) {
    const SessionInfo &before = d.state.session(key)->info;
    if (in_replay(before) || next <= before.sent) return;
    SessionInfo &info = d.info(key);
    info.sent = std::max(info.sent, next);
    info.shown = std::max(info.shown, next);
}

std::int32_t acknowledged(const Session &session) {
    std::int32_t sent = session.info.sent;
    for (const Waiter &w : session.waiters) sent = std::max(sent, w.acknowledges);
    return sent;
}

std::int32_t returned_below(const Session &session, std::int32_t end) {
    return session.results.count_below(static_cast<std::size_t>(end));
}

void wait_grain(Draft &d, const Caller &caller, const wire::Gwait &call) {
    wait(d, caller, call.session, Waiter{caller.conn, caller.request, call.next, 0, call.next, call.failed_from},
         call.block, call.has_all);
}

void wait_grains(Draft &d, const Caller &caller, const wire::GwaitMany &call) {
    if (call.most < 1) return d.refuse(caller, fail(Code::invalid, "the number of results wanted must be at least 1"));
    const auto most = std::min(call.most, static_cast<std::int32_t>(limits::batch_grains));
    wait(d, caller, call.session, Waiter{caller.conn, caller.request, call.next, most, call.next, call.failed_from},
         call.block, call.has_all);
}

void answer_waiters(Draft &d, const AnswerWaiters &in) {
    const Session *session = d.state.session(in.session);
    if (!session || session->waiters.empty()) return;
    std::vector<Waiter> left;
    std::optional<Status> why;  // as soon as one waiter has no result
    for (const Waiter &w : session->waiters) {
        const std::int32_t index = result_from(d, *session, w.next, w.failed_from);
        if (index < 0 && (!why || planted("core.ask_for_each_waiter"))) why = no_more(d, in.session);
        if (index < 0 && *why) {
            left.push_back(w);
            continue;
        }
        acknowledge(d, in.session, w.acknowledges);
        Caller to{.conn = w.conn, .request = w.request};
        if (index >= 0) hand_out(d, in.session, w, index);
        else d.refuse(to, *why);
    }
    if (left.size() != session->waiters.size()) d.waiters(in.session) = std::move(left);
}

void wake_waiters(Draft &d, const SessionKey &key) {
    const Session *session = d.state.session(key);
    if (session && !session->waiters.empty()) d.follow_up(AnswerWaiters{key});
}

void wake_all_waiters(Draft &d) {
    std::set<SessionKey> waiting;
    for (const auto &[conn, sessions] : d.state.waiting_conns) waiting.insert(sessions.begin(), sessions.end());
    for (const SessionKey &key : waiting) d.follow_up(AnswerWaiters{key});
}

void dismiss_waiters(Draft &d, const SessionKey &key, const Status &why) {
    const Session *session = d.state.session(key);
    if (!session || session->waiters.empty()) return;
    for (const Waiter &w : session->waiters) {
        Caller to{.conn = w.conn, .request = w.request};
        acknowledge(d, key, w.acknowledges);
        d.refuse(to, why);
    }
    d.waiters(key).clear();
}

}  // namespace dcs::core
