// d_get_auth and the ageing of the authorization table.
#include <set>

#include "base/text.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

// No scheduler was away for so long: the wall clock was wrong when the entry was stamped, or is now.
constexpr std::int64_t absurd_age_s = 365 * 24 * 3600;
// Entries that one user may have without sessions; the oldest gives way to a new one.
constexpr std::size_t idle_entries_per_user = 1024;

std::set<TokenHash> tokens_in_use(const State &state) {
    std::set<TokenHash> used;
    for (const auto &[seniority, key] : state.by_seniority) used.insert(state.session(key)->info.token);
    return used;
}

AuthEntry stamped(AuthEntry entry, std::int64_t wall_s) {
    entry.stamp_s = wall_s;
    return entry;
}

// Stamps are set and read only in this file, so that core needs no wall clock anywhere else: an entry
// lives at least the policy's token_age_s from the first of these occasions that finds it without sessions.
void age_entries(Draft &d, const std::string &user, std::int64_t wall_s) {
    const std::set<TokenHash> used = tokens_in_use(d.state);
    const std::int64_t most_s = d.state.policy.token_age_s;
    std::size_t idle = 0;
    std::optional<std::pair<std::int64_t, TokenHash>> oldest;
    for (const auto &[hash, entry] : d.state.auth) {
        if (used.count(hash) != 0) {
            if (entry.stamp_s != 0) d.change(SetAuth{hash, stamped(entry, 0)});
            continue;
        }
        const std::int64_t age_s = wall_s - entry.stamp_s;
        const bool unstamped = entry.stamp_s == 0 || age_s > absurd_age_s || age_s < -most_s;
        if (!unstamped && age_s > most_s) {
            d.change(EraseAuth{hash});
            continue;
        }
        if (unstamped) d.change(SetAuth{hash, stamped(entry, wall_s)});
        if (entry.user != user) continue;
        ++idle;
        const std::pair<std::int64_t, TokenHash> age{unstamped ? wall_s : entry.stamp_s, hash};
        if (!oldest || age < *oldest) oldest = age;
    }
    if (idle >= idle_entries_per_user) d.change(EraseAuth{oldest->second});
}

Status bad_ident() {
    return fail(Code::invalid,
                "the control ident must be 1 to 64 letters, digits, '.', '_' or '-', not beginning with '.' or '-'");
}

Status check_begin(const State &state, const BeginControl &in) {
    if (Status s = check_origin(state, in.from, in.user); !s) return s;
    if (!in.login) return in.login;
    Caller caller{.user = in.user};
    if (Status s = check_user(state, caller); !s) return s;
    return is_name(in.ident) ? Status::ok() : bad_ident();
}

}  // namespace

void begin_control(Draft &d, const BeginControl &in) {
    if (Status s = check_begin(d.state, in); !s) {
        d.effect(Reply{in.conn, in.request, wire::error_reply(s)});
        d.effect(CloseConnection{in.conn});
        d.event("audit: no control program of another host begins, asked by host " + in.from.host + " at " +
                in.address + ": " + s.text);
        return;
    }
    age_entries(d, in.user, in.wall_s);
    d.change(SetAuth{in.fresh_hash, {in.user, in.ident, in.wall_s, in.from.host, in.key}});
    d.effect(SendProgram{in.conn, in.request, in.user, in.from.host, in.ident, in.public_key,
                         std::string(in.fresh.begin(), in.fresh.end())});
    d.effect(CloseConnection{in.conn});
    d.event(in.user + " begins control program " + in.ident + " on host " + in.from.host + " at " + in.address);
}

// With it the token of a program that has no session just now stays young.
void renew_program(Draft &d, const Caller &caller, const RenewProgram &call) {
    if (caller.host.empty())
        return d.refuse(caller, fail(Code::refused, "a control program on the scheduler's host has no certificate"));
    if (call.key != caller.key)
        return d.refuse(caller,
                        fail(Code::refused,
                             "the key differs from the certificate's: a certificate is renewed only for its own key"));
    const AuthEntry &entry = d.state.auth.at(caller.token);
    if (entry.stamp_s != 0) d.change(SetAuth{caller.token, stamped(entry, call.wall_s)});
    d.effect(SendProgram{caller.conn, caller.request, caller.user, caller.host, entry.ident, call.public_key, ""});
}

void get_auth(Draft &d, const Caller &caller, const GetAuth &call) {
    if (!is_name(call.ident)) return d.refuse(caller, bad_ident());
    age_entries(d, caller.user, call.wall_s);
    d.change(SetAuth{call.fresh_hash, {caller.user, call.ident, call.wall_s, caller.host, caller.key}});
    d.reply(caller, wire::AuthReply{std::string(call.fresh.begin(), call.fresh.end())});
    d.event(caller.user + " begins control program " + call.ident);
}

}  // namespace dcs::core
