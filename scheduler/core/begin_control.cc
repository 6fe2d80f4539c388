// d_get_auth (C1) and the ageing of the authorization table (S11).
#include <set>

#include "base/limits.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

// Entries that one user may have without sessions; the oldest gives way to a new one.
constexpr std::size_t idle_entries_per_user = 1024;

std::set<TokenHash> tokens_in_use(const State &state) {
    std::set<TokenHash> used;
    for (const auto &[seniority, key] : state.by_seniority)
        used.insert(state.session(key)->info.token);
    return used;
}

// Stamps are set and looked at only here, so that core needs no wall clock anywhere else: an entry
// lives at least token_age_s from the first of these occasions that finds it without sessions.
void age_entries(Draft &d, const std::string &user, std::int64_t wall_s) {
    const std::set<TokenHash> used = tokens_in_use(d.state);
    std::size_t idle = 0;
    std::optional<std::pair<std::int64_t, TokenHash>> oldest;
    for (const auto &[hash, entry] : d.state.auth) {
        if (used.count(hash) != 0) {
            if (entry.stamp_s != 0) d.change(SetAuth{hash, {entry.user, entry.ident, 0}});
            continue;
        }
        if (entry.stamp_s != 0 && wall_s - entry.stamp_s > limits::token_age_s) {
            d.change(EraseAuth{hash});
            continue;
        }
        if (entry.stamp_s == 0) d.change(SetAuth{hash, {entry.user, entry.ident, wall_s}});
        if (entry.user != user) continue;
        ++idle;
        const std::pair<std::int64_t, TokenHash> age{entry.stamp_s == 0 ? wall_s : entry.stamp_s,
                                                     hash};
        if (!oldest || age < *oldest) oldest = age;
    }
    if (idle >= idle_entries_per_user) d.change(EraseAuth{oldest->second});
}

}  // namespace

void begin_control(Draft &d, const Caller &caller, const BeginControl &call) {
    if (!good_name(call.ident))
        return d.refuse(caller,
                        fail(Code::invalid, "a control ident is 1 to 64 letters, digits, '.', '_' "
                                            "or '-', and does not begin with '.' or '-'"));
    age_entries(d, caller.user, call.wall_s);
    d.change(SetAuth{call.fresh_hash, {caller.user, call.ident, call.wall_s}});
    d.reply(caller, wire::AuthReply{std::string(call.fresh.begin(), call.fresh.end())});
    d.event(caller.user + " begins control program " + call.ident);
}

}  // namespace dcs::core
