#include "scheduler/turn/concerns.h"

namespace dcs::turn {
namespace {

// Requests name the session by number, and its user if that is not the caller.
template <class R> std::string user_of(const R &request) {
    if constexpr (requires { request.user; })
        return request.user;
    else
        return {};
}

struct OfRequest {
    const core::Caller &caller;
    template <class R> SessionKey operator()(const R &request) const {
        const std::string named = user_of(request);
        const std::string &user = named.empty() ? caller.user : named;
        if constexpr (requires { request.session; })
            return {user, request.session};
        else if constexpr (requires { request.number; })
            return {user, request.number};
        else
            return {};
    }
};

struct OfInput {
    SessionKey operator()(const core::UserCall &in) const { return std::visit(OfRequest{in.caller}, in.request); }
    SessionKey operator()(const core::ServerReport &in) const { return wire::key_of(in.report->key).session; }
    SessionKey operator()(const core::ReportHandedOver &in) const {
        return in.report ? wire::key_of(in.report->key).session : SessionKey{};
    }
    SessionKey operator()(const core::ServerLaunchResult &in) const { return wire::key_of(in.result.key).session; }
    SessionKey operator()(const core::PackGrains &in) const { return in.session; }
    SessionKey operator()(const core::PlaceGrain &in) const { return in.key.session; }
    SessionKey operator()(const core::AnswerWaiters &in) const { return in.session; }
    template <class Other> SessionKey operator()(const Other &) const { return {}; }
};

struct OfEffect {
    template <class E> SessionKey operator()(const E &effect) const {
        if constexpr (requires { effect.key.session; })
            return effect.key.session;
        else if constexpr (requires { effect.session.number; })
            return effect.session;
        else
            return {};
    }
};

}  // namespace

SessionKey concerns(const core::Input &input) { return std::visit(OfInput{}, input); }
SessionKey concerns(const core::Effect &effect) { return std::visit(OfEffect{}, effect); }

}  // namespace dcs::turn
