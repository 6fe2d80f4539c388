#include "scheduler/core/decisions.h"

namespace dcs::core {

Status check_token(const State &state, const Caller &caller) {
    if (!caller.has_token)
        return fail(Code::no_auth, "the connection carries no authorization token");
    const auto entry = state.auth.find(caller.token);
    if (entry == state.auth.end())
        return fail(Code::no_auth,
                    "the scheduler does not know this authorization token (any more)");
    if (entry->second.user != caller.user)
        return fail(Code::no_auth, "the authorization token is not one of " + caller.user);
    return Status::ok();
}

Status check_operator(const Caller &caller, const char *what) {
    if (caller.privileged) return Status::ok();
    return fail(Code::refused, caller.user + " may not " + what +
                                   ": that is for root, for the scheduler's account or a private pool's owner");
}

Status missing_session(const State &state, const SessionKey &key) {
    if (const auto damaged = state.set_aside.find(key); damaged != state.set_aside.end())
        return fail(Code::io_error, "session " + to_text(key) + " is set aside, " + damaged->second +
                                        "; take another number, or restore that file while the scheduler is "
                                        "stopped, or import an export of it (dcs session import DIR "
                                        "--replace), or remove it (dcs session clean)");
    return fail(Code::session_unknown, key.user + " has no session " + std::to_string(key.number));
}

Status missing_grain(const State &state, const GrainKey &key) {
    static const std::map<GrainNumber, std::string> none;
    const Session *session = state.session(key.session);
    const auto &damaged = session ? session->damaged : none;
    if (const auto found = damaged.find(key.grain); found != damaged.end())
        return fail(Code::io_error, "grain " + to_text(key) + " is set aside, " + found->second +
                                        "; kill it to go on without it, or restore that file while "
                                        "the scheduler is stopped");
    return fail(Code::grain_unknown,
                "session " + to_text(key.session) + " has no grain " + std::to_string(key.grain));
}

Status taken_session(const State &state, const SessionKey &key, const Caller &caller) {
    const std::string &bound = state.session(key)->info.ident;
    const auto entry = state.auth.find(caller.token);
    const bool same = entry != state.auth.end() && entry->second.ident == bound;
    const std::string text = "session " + to_text(key) +
                             (same ? " was taken over by a newer run of " + bound
                                   : " is bound to the control program " + bound);
    return fail(Code::session_taken, text);
}

Result<SessionKey> held_session(const State &state, const Caller &caller, std::int32_t number) {
    if (Status s = check_token(state, caller); !s) return s;
    const SessionKey key{caller.user, number};
    const Session *session = state.session(key);
    if (!session) return missing_session(state, key);
    if (session->info.token == caller.token) return key;
    if (session->info.status == SessionStatus::terminated)
        return fail(Code::session_closed, "session " + to_text(key) + " is closed");
    return taken_session(state, key, caller);
}

Status check_owner(const Caller &caller, const std::string &user) {
    if (caller.privileged || caller.user == user) return Status::ok();
    return fail(Code::refused, caller.user + " may not do this with a session of " + user);
}

}  // namespace dcs::core
