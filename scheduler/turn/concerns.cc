#include "scheduler/turn/concerns.h"

#include "scheduler/core/authorise.h"

namespace dcs::turn {
namespace {

// Requests name the session by number, and its user if that is not the caller.
template <class R> std::string user_of(const R &request) {
    if constexpr (requires { request.user; }) return request.user;
    else return {};
}

struct OfRequest {
    const core::Caller &caller;
    template <class R> SessionKey operator()(const R &request) const {
        const std::string named = user_of(request);
        const std::string &user = named.empty() ? caller.user : named;
        if constexpr (requires { request.session; }) return {user, request.session};
        else if constexpr (requires { request.number; }) return {user, request.number};
        else return {};
    }
};

struct OfInput {
    const core::State &state;

    Concern operator()(const core::UserCall &in) const {
        const SessionKey session = std::visit(OfRequest{in.caller}, in.request);
        const bool own = session.user == in.caller.user || in.caller.privileged;
        if (!own || !core::authorise(state, in.caller, in.request)) return {{}, in.caller.user};
        return {session, {}};
    }
    Concern operator()(const core::ServerReport &in) const { return of_host(in.report->key, in.host); }
    Concern operator()(const core::ServerLaunchResult &in) const { return of_host(in.result.key, in.host); }
    Concern operator()(const core::ReportHandedOver &in) const {
        return {in.report ? wire::key_of(in.report->key).session : SessionKey{}, {}};
    }
    Concern operator()(const core::PackGrains &in) const { return {in.session, {}}; }
    Concern operator()(const core::RemoveOld &in) const { return {in.session, {}}; }
    Concern operator()(const core::PlaceGrain &in) const { return {in.key.session, {}}; }
    Concern operator()(const core::AnswerWaiters &in) const { return {in.session, {}}; }
    template <class Other> Concern operator()(const Other &) const { return {}; }

    Concern of_host(const wire::WireGrain &key, core::HostId id) const {
        const core::Grain *grain = state.grain(wire::key_of(key));
        if (grain && grain->lessee == id) return {wire::key_of(key).session, {}};
        const core::Host *host = state.host(id);
        return {{}, host ? "host " + host->config->name : std::string()};
    }
};

struct OfEffect {
    template <class E> SessionKey operator()(const E &effect) const {
        if constexpr (requires { effect.key.session; }) return effect.key.session;
        else if constexpr (requires { effect.session.number; }) return effect.session;
        else return {};
    }
};

ConnId conn_of(const core::Effect &effect) {
    return std::visit(
        [](const auto &e) -> ConnId {
            if constexpr (requires { e.conn; }) return e.conn;
            else return no_connection;
        },
        effect);
}

}  // namespace

Concern concerns(const core::State &state, const core::Input &input) { return std::visit(OfInput{state}, input); }

Concern concerns(const Connections &connections, const core::Effect &effect) {
    const SessionKey session = std::visit(OfEffect{}, effect);
    const Connection *who = connections.find(conn_of(effect));
    const bool others = who && who->door == Door::user && !who->privileged && who->user != session.user;
    return others ? Concern{{}, who->user} : Concern{session, {}};
}

Concern concerns(const Connection &who) {
    if (!who.certified.host.empty() && who.user.empty()) return {{}, "host " + who.certified.host};
    return {{}, who.user};
}

std::string sender_of(const Connection &who) {
    if (!who.user.empty()) return "user " + who.user;
    if (!who.certified.host.empty()) return "host " + who.certified.host;
    return who.address.empty() ? std::string() : "address " + who.address;
}

// Servers of this host are processes of the scheduler's account, which is believed: each goes by the name that it gave.
std::string sender_of(const Connections &connections, const core::State &state, const core::Input &input) {
    if (const auto *call = std::get_if<core::UserCall>(&input)) return "user " + call->caller.user;
    if (const auto *first = std::get_if<core::ServerFirstCall>(&input))
        return "host " + (first->certified.host.empty() ? first->call->host : first->certified.host);
    return std::visit(
        [&](const auto &in) -> std::string {
            if constexpr (requires {
                              in.host;
                              in.conn;
                          }) {
                if constexpr (std::is_convertible_v<decltype(in.host), core::HostId>)
                    if (const core::Host *host = state.host(in.host)) return "host " + host->config->name;
            }
            if constexpr (requires { in.conn; }) {
                const Connection *who = connections.find(in.conn);
                return who ? sender_of(*who) : std::string();
            }
            return {};
        },
        input);
}

}  // namespace dcs::turn
