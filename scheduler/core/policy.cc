// The pool's rules (read at the start and reread), and who may call at all.
#include <algorithm>

#include "scheduler/core/decisions.h"

namespace dcs::core {

void take_policy(Draft &d, const PolicyTable &in) {
    if (in.policy == d.state.policy) return;
    d.change(SetPolicy{in.policy});
    // A higher quota, or another order: what waits may go now.
    for (const auto &[host_class, hosts] : d.state.open_hosts)
        for (const HostId id : hosts) d.follow_up(FillHost{id});
    d.event("the pool's rules were taken" + std::string(in.policy.fair_share ? ", users share fairly" : ""));
}

Status check_user(const State &state, const Caller &caller) {
    const std::vector<std::string> &users = state.policy.users;
    if (users.empty() || caller.privileged) return Status::ok();
    if (std::find(users.begin(), users.end(), caller.user) != users.end()) return Status::ok();
    return fail(Code::refused, caller.user + " is not in the scheduler's list of users: whoever runs the "
                                             "pool can add the name there and have it reread");
}

namespace {
UserCounts counts_of(const State &state, const std::string &user) {
    const auto found = state.users.find(user);
    return found == state.users.end() ? UserCounts() : found->second;
}

Status within(std::int64_t have, std::int64_t more, std::int32_t most, const std::string &user,
              const std::string &what, const std::string &advice) {
    if (most == 0 || have + more <= most) return Status::ok();
    const std::string and_more = more == 1 ? "" : " and submits " + std::to_string(more);
    return fail(Code::limit, user + " has " + std::to_string(have) + " " + what + and_more +
                                 ", the pool's rules allow " + std::to_string(most) + ": " + advice);
}
}  // namespace

Status check_session_quota(const State &state, const std::string &user) {
    return within(counts_of(state, user).sessions, 1, state.policy.sessions_per_user, user, "active sessions",
                  "close one first");
}

Status check_grain_quota(const State &state, const std::string &user, std::int64_t more) {
    return within(counts_of(state, user).unfinished, more, state.policy.grains_per_user, user,
                  "unfinished grains", "wait until some have finished");
}

}  // namespace dcs::core
