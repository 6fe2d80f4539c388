// The pool's rules (read at the start and reread), and who may call at all.
#include <algorithm>

#include "base/load_limits.h"
#include "scheduler/core/ahead.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {

void take_policy(Draft &d, const PolicyTable &in) {
    if (in.policy == d.state.policy) return;
    if (in.policy.resources != d.state.policy.resources)  // what could run nowhere may have enough now
        wake_all_waiters(d);
    d.change(SetPolicy{in.policy});
    for (const auto &[seniority, key] : d.state.by_seniority)
        if (is_denied(d.state, key.user)) recall_of(d, key, "is of a denied user");
    // A higher quota, or another order: what waits may go now.
    for (const auto &[host_class, hosts] : d.state.open_hosts)
        for (const HostId id : hosts) d.follow_up(FillHost{id});
    d.event("the pool's policy is in effect" + std::string(in.policy.fair_share ? ", users share fairly" : ""));
}

bool is_denied(const State &state, const std::string &user) {
    const std::vector<std::string> &denied = state.policy.denied;
    return std::find(denied.begin(), denied.end(), user) != denied.end();
}

Status check_user(const State &state, const Caller &caller) {
    const std::vector<std::string> &users = state.policy.users;
    if (caller.privileged) return Status::ok();
    if (is_denied(state, caller.user))
        return fail(Code::refused, "the pool's policy denies " + caller.user + ": ask the pool's operator why");
    if (users.empty() || std::find(users.begin(), users.end(), caller.user) != users.end()) return Status::ok();
    return fail(Code::refused,
                caller.user + " is not in the scheduler's list of users: ask the pool's operator to add the name");
}

namespace {
UserCounts counts_of(const State &state, const std::string &user) {
    const auto found = state.users.find(user);
    return found == state.users.end() ? UserCounts() : found->second;
}

Status within(std::int64_t have, std::int64_t more, std::int32_t most, const std::string &user, const std::string &what,
              const std::string &advice) {
    if (most == 0 || have + more <= most) return Status::ok();
    const std::string and_more = more == 1 ? "" : " and submits " + std::to_string(more);
    const std::string fewer = "submit at most " + std::to_string(most - have) + (have == 0 ? " at a time" : " now");
    return fail(Code::limit, user + " has " + std::to_string(have) + " " + what + and_more +
                                 ", but the pool's policy allows " + std::to_string(most) + ": " +
                                 (more > most && have < most ? fewer : advice));
}
}  // namespace

Status check_session_quota(const State &state, const std::string &user) {
    return within(counts_of(state, user).sessions, 1, state.policy.sessions_per_user, user, "active sessions",
                  "close one (dcs session close done closes those with nothing left to do)");
}

Status check_grain_quota(const State &state, const std::string &user, std::int64_t more) {
    return within(counts_of(state, user).unfinished, more, state.policy.grains_per_user, user, "unfinished grains",
                  "wait until some finish");
}

namespace {
std::string in_mb(std::uint64_t bytes) {
    const std::uint64_t tenths = (bytes * 10 + (1u << 20) - 1) >> 20;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MB";
}

// Of the free space and the user's data; unlimited without such a rule.
std::uint64_t share_of(const State &state, const UserStored &has) {
    const auto free = state.stored.free_bytes();
    if (!free || state.policy.stored_share == 0) return UINT64_MAX;
    const auto percent = static_cast<std::uint64_t>(state.policy.stored_share);
    return *free / 100 * percent + has.all() / 100 * percent;  // their sum may be no number on a disk without end
}

Status too_much(const std::string &user, const UserStored &has, std::uint64_t more, const std::string &most) {
    return fail(Code::limit, user + " has " + in_mb(has.all()) + " on the scheduler's disk (sessions " +
                                 in_mb(has.sessions) + ", contents " + in_mb(has.contents) + "); this would add " +
                                 in_mb(more) + ", but " + most +
                                 ": remove sessions that you no longer need (dcs session clean), or ask the pool's "
                                 "operator for more space");
}
}  // namespace

Status check_stored(const State &state, const std::string &user, bool privileged, std::uint64_t more) {
    const UserStored has = state.stored.of(user);
    const std::uint64_t most = static_cast<std::uint64_t>(state.policy.stored_mb_per_user) << 20;
    if (most != 0 && has.all() + more > most)
        return too_much(user, has, more, "the pool's policy allows " + in_mb(most));
    if (privileged) return Status::ok();
    if (const std::uint64_t share = share_of(state, has); has.all() + more > share)
        return too_much(user, has, more,
                        "the pool's policy allows " + in_mb(share) + " now, " +
                            std::to_string(state.policy.stored_share) +
                            " % of this user's data and the free space together");
    return Status::ok();
}

bool may_report(const State &state, const std::string &user, std::uint64_t more) {
    const auto free = state.stored.free_bytes();
    const bool others = state.stored.users().size() > 1 || state.stored.users().count(user) == 0;
    if (!free || !others || more == 0 || *free >= limits::reports_leave_bytes + more) return true;
    const UserStored has = state.stored.of(user);
    return has.all() + more <= share_of(state, has);
}

}  // namespace dcs::core
