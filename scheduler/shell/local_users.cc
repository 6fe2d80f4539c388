#include "scheduler/shell/local_users.h"

#include <unistd.h>

#include "base/clock.h"
#include "daemon/log.h"

namespace dcs::shell {
namespace {

// Who calls often is looked up once a minute.
constexpr Duration told_every = seconds(60), shown_for = seconds(90);
constexpr const char *others_wait = "users of this host who have called this scheduler before are served, others wait";

}  // namespace

bool owner_or_root(std::uint32_t uid) { return uid == 0 || uid == ::geteuid(); }

Result<std::string> LocalUsers::name_of(std::uint32_t uid) { return names_.of(uid, owner_or_root(uid), boot_clock()); }

// One whose directory does not answer may be known.
bool LocalUsers::knows_login(const std::string &login) {
    const Status s = keeper_.knows_login(login);
    if (s.code == Code::unreachable) (void)unknown(s);
    return s.code != Code::not_found;
}

Status LocalUsers::check_login(const std::string &login) {
    const Status s = keeper_.check_login(login);
    return s.code == Code::unreachable ? unknown(s) : s;
}

// By name: the groups that a process has are those of who started it, and stay when a login has left the group.
Result<KnownPeer> LocalUsers::look_up(std::uint32_t uid) {
    const Result<std::string> name = keeper_.user_name(uid);
    if (!name) return unknown(name.status());
    KnownPeer peer{*name, {}};
    if (peer.login.empty() || owner_or_root(uid) || !members_only_) return peer;
    peer.may_call = check_login(peer.login);
    if (peer.may_call.code == Code::unreachable) return peer.may_call;
    return peer;
}

Status LocalUsers::unknown(const Status &why) {
    if (keeper_.process().lost()) return why;
    const Instant now = boot_clock();
    if (silence_.empty() || now - silence_told_ >= told_every) {
        silence_told_ = now;
        log_warn(why.text + ": " + others_wait);
    }
    silence_ = why.text;
    silent_at_ = now;
    return why;
}

void LocalUsers::add_problem(std::vector<wire::ProblemRow> &rows) const {
    const Duration ago = boot_clock() - silent_at_;
    if (silence_.empty() || ago > shown_for) return;
    rows.push_back({"users", "", silence_ + " (" + std::to_string(static_cast<std::int64_t>(ago.seconds())) + " s ago)",
                    others_wait,
                    "check the service that this host asks for its users (LDAP, sssd): `getent passwd NAME` there"});
}

}  // namespace dcs::shell
