#include "crash/scheduler/ledger.h"

#include <algorithm>

#include "pki/digest.h"
#include "scheduler/core/decisions.h"

namespace dcs::test {
namespace {

template <class Call> SessionKey named(const Call &call, const std::string &caller, std::int32_t number) {
    return {call.user.empty() ? caller : call.user, number};
}

}  // namespace

// The session that a call may open, close or remove; the pointer lives as long as the map's node.
Ledger::Session *Ledger::changed_by(const Call &call) {
    if (const auto *open = std::get_if<wire::OpenSession>(&call.message)) return &sessions_[{call.user, open->number}];
    if (const auto *close = std::get_if<wire::CloseSession>(&call.message))
        return &sessions_[named(*close, call.user, close->number)];
    if (const auto *clean = std::get_if<wire::CleanSession>(&call.message))
        return &sessions_[named(*clean, call.user, clean->number)];
    return nullptr;
}

void Ledger::asked(ConnId conn, const std::string &who, std::uint64_t request, const wire::AnyMessage &message) {
    who_[conn] = who;
    if (const auto *hello = std::get_if<wire::Hello>(&message)) {
        if (!hello->token.empty()) token_of_[conn] = pki::sha256(hello->token);
        return;
    }
    if (const auto *report = std::get_if<wire::GrainReport>(&message)) {
        reported.reports[{who, wire::key_of(report->key), report->incarnation, report->last_seq}] =
            std::make_shared<const wire::GrainReport>(*report);
        return;
    }
    if (const auto *late = std::get_if<wire::HandOver>(&message)) {
        const wire::GrainReport &r = late->report;
        reported.reports[{who, wire::key_of(r.key), r.incarnation, r.last_seq}] =
            std::make_shared<const wire::GrainReport>(r);
        return;
    }
    if (request == 0) return;
    Call &call = calls_[request];
    call.user = who;
    call.message = message;
    ++call.times;
    if (Session *session = changed_by(call)) {
        ++session->changing;
        if (std::holds_alternative<wire::CleanSession>(message)) ++session->cleaning;
    }
    const auto note = [&](GrainNumber grain, const wire::GrainSpec &spec) {
        reported.params[{core::RequestId{request}, grain}] = std::make_shared<const std::string>(wire::pack(spec));
    };
    if (const auto *submit = std::get_if<wire::Gexec>(&message)) note(submit->grain, submit->spec);
    if (const auto *batch = std::get_if<wire::GexecMany>(&message))
        for (const wire::GrainOrder &order : batch->orders) note(order.grain, order.spec);
    if (const auto *revoke = std::get_if<wire::RevokeToken>(&message)) {
        revoke_asked_.insert(revoke->id);
        std::erase_if(codes_, [&](const TokenHash &hash) { return core::id_of_code(hash) == revoke->id; });
    }
    if (const auto *kill = std::get_if<wire::Gkill>(&message))
        sessions_[named(*kill, who, kill->session)].grains[kill->grain].kill_asked = true;
}

// One reply came to one sending of the call.
void Ledger::settle(const Call &call, std::uint64_t request) {
    if (Session *session = changed_by(call)) {
        --session->changing;
        if (std::holds_alternative<wire::CleanSession>(call.message)) --session->cleaning;
    }
    if (--calls_[request].times == 0) calls_.erase(request);
}

std::string Ledger::said(ConnId conn, std::uint64_t request, const wire::AnyMessage &message, const core::State &state,
                         const Snapshot &durable) {
    if (const auto *launch = std::get_if<wire::Launch>(&message)) return launched(*launch, durable);
    if (const auto *ack = std::get_if<wire::ReportAck>(&message)) {
        acknowledged(conn, *ack);
        return {};
    }
    const auto found = calls_.find(request);
    if (request == 0 || found == calls_.end()) return {};
    const Call call = found->second;
    settle(call, request);
    if (const auto *auth = std::get_if<wire::AuthReply>(&message)) tokens_.insert(pki::sha256(auth->token));
    if (const auto *code = std::get_if<wire::TokenCreated>(&message)) {
        const TokenHash hash = pki::sha256(code->token);
        if (revoke_asked_.count(core::id_of_code(hash)) == 0) codes_.insert(hash);
    }
    if (const auto *reply = std::get_if<wire::OpenReply>(&message)) return opened(call, request, conn, *reply, state);
    if (const auto *reply = std::get_if<wire::GrainResult>(&message))
        return result(call, request, *reply, state, durable);
    if (const auto *reply = std::get_if<wire::GrainResults>(&message))
        return results(call, request, *reply, state, durable);
    if (std::holds_alternative<wire::Done>(message)) return done(call, state);
    return {};
}

std::string Ledger::opened(const Call &call, std::uint64_t request, ConnId conn, const wire::OpenReply &reply,
                           const core::State &state) {
    const auto &open = std::get<wire::OpenSession>(call.message);
    const SessionKey key{call.user, open.number};
    Session &session = sessions_[key];
    session.fact = reply.as == wire::OpenedAs::replay ? Fact::closed : Fact::open;
    session.holder = token_of_[conn];
    if (open.sent_reset) {
        session.sent = 0;
        session.reset_by = request;
    }
    if (const core::Session *there = state.session(key)) session.seniority = there->info.seniority;
    return {};
}

std::string Ledger::done(const Call &call, const core::State &state) {
    if (const auto *submit = std::get_if<wire::Gexec>(&call.message)) {
        sessions_[{call.user, submit->session}].grains[submit->grain].submitted = true;
    } else if (const auto *batch = std::get_if<wire::GexecMany>(&call.message)) {
        for (const wire::GrainOrder &order : batch->orders)
            sessions_[{call.user, batch->session}].grains[order.grain].submitted = true;
    } else if (std::holds_alternative<wire::CloseSession>(call.message)) {
        changed_by(call)->fact = Fact::closed;
    } else if (const auto *clean = std::get_if<wire::CleanSession>(&call.message)) {
        Session &session = sessions_[named(*clean, call.user, clean->number)];
        session.fact = Fact::removed;
        session.grains.clear();
        session.sent = 0;
    } else if (const auto *revoke = std::get_if<wire::RevokeToken>(&call.message)) {
        gone_codes_.insert(revoke->id);
    } else if (const auto *kill = std::get_if<wire::Gkill>(&call.message)) {
        const SessionKey key = named(*kill, call.user, kill->session);
        const core::Grain *grain = state.grain({key, kill->grain});
        if (!grain) return {};  // the same turn removed its session
        Grain &promised = sessions_[key].grains[kill->grain];
        promised.dead = true;
        promised.killed = promised.killed || grain->status() == core::GrainStatus::killed;
    }
    return {};
}

std::string Ledger::results(const Call &call, std::uint64_t request, const wire::GrainResults &reply,
                            const core::State &state, const Snapshot &durable) {
    const auto &wait = std::get<wire::GwaitMany>(call.message);
    if (reply.results.empty() || reply.results.size() > static_cast<std::size_t>(wait.most))
        return "a batch of results has another number than was wanted";
    std::int32_t before = wait.next;
    for (const wire::GrainResult &one : reply.results) {
        if (one.sent <= before) return "a batch of results is out of order";
        before = one.sent;
        const wire::Gwait alone{wait.session, wait.next, wait.block};
        if (std::string what = result({call.user, alone}, request, one, state, durable); !what.empty()) return what;
    }
    return {};
}

std::string Ledger::result(const Call &call, std::uint64_t request, const wire::GrainResult &reply,
                           const core::State &state, const Snapshot &durable) {
    const auto &wait = std::get<wire::Gwait>(call.message);
    const GrainKey key{{call.user, wait.session}, reply.grain};
    const core::Session *there = state.session(key.session);
    if (!there) return {};
    Session &session = sessions_[key.session];
    session.grains[reply.grain].shown_as = reply.sent - 1;
    // A replay acknowledges nothing; one that is just being reopened may have been one. Nor does a call that waited
    // already when the program took back what it had acknowledged.
    const bool active =
        there->info.status == core::SessionStatus::active && session.changing == 0 && request > session.reset_by;
    if (active) session.sent = std::max(session.sent, wait.next);
    const auto known = durable.grains.find(key);
    const std::string name = "the result of grain " + to_text(key);
    if (known == durable.grains.end()) return name + " was handed out before it was durable";
    const Snapshot::Known &right = known->second;
    if (reply.out_length != right.out->size() || reply.err_length != right.err->size() ||
        reply.out != right.out->substr(0, limits::gwait_text_bytes) ||
        reply.err != right.err->substr(0, limits::gwait_text_bytes))
        return name + " has other bytes than were reported";
    return {};
}

std::string Ledger::launched(const wire::Launch &launch, const Snapshot &durable) {
    const GrainKey key = wire::key_of(launch.key);
    Grain &promised = sessions_[key.session].grains[key.grain];
    const std::string name = "the launch of grain " + to_text(key);
    if (launch.incarnation <= promised.leased) return name + " repeats an incarnation";
    promised.leased = launch.incarnation;
    const auto known = durable.grains.find(key);
    if (known == durable.grains.end() || known->second.incarnation < launch.incarnation)
        return name + " left before its lease was durable";
    const auto spec = wire::unpack_spec(*known->second.params);
    if (!spec || launch.input_base > spec->input.size() ||
        launch.checkpoint_length != known->second.checkpoint->size() ||
        launch.input != *known->second.checkpoint + spec->input.substr(launch.input_base))
        return name + " has another input than was submitted and reported";
    return {};
}

void Ledger::acknowledged(ConnId conn, const wire::ReportAck &ack) {
    const GrainKey key = wire::key_of(ack.key);
    const auto found = reported.reports.find({who_[conn], key, ack.incarnation, ack.last_seq});
    if (ack.verdict != wire::Verdict::taken || found == reported.reports.end()) return;
    const wire::GrainReport &report = *found->second;
    if (report.ended != ack.ended || report.last_seq != ack.last_seq) return;
    Grain &promised = sessions_[key.session].grains[key.grain];
    const bool finished = report.ended && !report.innocent && report.exit_code == 0 && report.signal == 0;
    if (finished) promised.finished = true;
    // What a failed incarnation wrote after its last checkpoint is written again by the next one.
    if (report.has_checkpoint || finished) promised.sequence = std::max(promised.sequence, report.last_seq);
}

std::string Ledger::broken_by_grain(const GrainKey &key, const Grain &promised, const core::Session &session) {
    const std::string name = "grain " + to_text(key) + ": ";
    const auto found = session.grains.find(key.grain);
    if (found == session.grains.end())
        return promised.exists() ? name + "something about it was acknowledged, it is gone" : "";
    const core::Grain &g = found->second;
    const bool killed = g.status() == core::GrainStatus::killed;
    const bool ended = killed || g.status() == core::GrainStatus::finished;
    if (promised.dead && !ended) return name + "its kill was acknowledged, it can run";
    if (promised.killed && !killed) return name + "it was killed, it is not";
    if (promised.finished && !(g.status() == core::GrainStatus::finished || (killed && promised.kill_asked)))
        return name + "its end was acknowledged, it has none";
    if (g.incarnation < promised.leased) return name + "an incarnation that was launched is given out again";
    if (g.course->sequence < promised.sequence) return name + "increments that were acknowledged are gone";
    const auto index = static_cast<std::size_t>(promised.shown_as);
    if (promised.shown_as >= 0 && (index >= session.results.size() || session.results[index] != key.grain ||
                                   session.info.shown <= promised.shown_as))
        return name + "its result was handed out, it has another place";
    return {};
}

std::string Ledger::broken_by_session(const SessionKey &key, const Session &promised, const core::Session *session) {
    const std::string name = "session " + to_text(key) + ": ";
    if (promised.changing == 0) {
        const bool gone = promised.fact == Fact::unknown || promised.fact == Fact::removed;
        if (promised.fact == Fact::removed && session) return name + "its removal was acknowledged, it is there";
        if (!gone && !session) return name + "it was acknowledged, it is gone";
        if (session) {
            const bool active = session->info.status == core::SessionStatus::active;
            if (promised.fact == Fact::closed && active) return name + "its close was acknowledged, it is open";
            if (promised.fact == Fact::open && !active) return name + "its opening was acknowledged, it is closed";
            if (promised.fact == Fact::open && session->info.token != promised.holder)
                return name + "another program holds it than was told so";
            if (session->info.sent < promised.sent) return name + "results that were acknowledged come again";
        }
    }
    if (!session) {
        for (const auto &[number, grain] : promised.grains)
            if (grain.exists()) return name + "a grain of it was acknowledged, it is gone";
        return {};
    }
    for (const auto &[number, grain] : promised.grains)
        if (std::string what = broken_by_grain({key, number}, grain, *session); !what.empty()) return what;
    return {};
}

std::string Ledger::broken_by(const core::State &state) const {
    for (const TokenHash &hash : tokens_)
        if (state.auth.count(hash) == 0) return "a token that was handed out is not known";
    for (const TokenHash &hash : codes_)
        if (state.trust.codes.count(hash) == 0) return "a code that was given to an operator is not known";
    for (const auto &[hash, code] : state.trust.codes)
        if (gone_codes_.count(core::id_of_code(hash)) != 0) return "a code that was taken back is known again";
    for (const auto &[key, promised] : sessions_) {
        if (promised.cleaning > 0) continue;
        if (std::string what = broken_by_session(key, promised, state.session(key)); !what.empty()) return what;
    }
    return {};
}

void Ledger::crashed(const core::State &state) {
    calls_.clear();
    who_.clear();
    token_of_.clear();
    for (auto &[key, session] : sessions_) {
        const core::Session *there = state.session(key);
        // It may have been removed, and made again, before the reply could leave.
        if (session.cleaning > 0 && (!there || there->info.seniority != session.seniority)) session = Session{};
        if (session.changing > 0) {
            session.fact = Fact::unknown;
            session.sent = 0;
        }
        session.changing = session.cleaning = 0;
        if (there) session.seniority = there->info.seniority;
    }
}

}  // namespace dcs::test
