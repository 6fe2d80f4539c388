#include "scheduler/shell/local_users.h"

#include <unistd.h>

#include "base/clock.h"
#include "daemon/log.h"

namespace dcs::shell {

bool owner_or_root(std::uint32_t uid) { return uid == 0 || uid == ::geteuid(); }

Result<std::string> LocalUsers::name_of(std::uint32_t uid) { return names_.of(uid, owner_or_root(uid), boot_clock()); }

// One whose directory does not answer may be known.
bool LocalUsers::knows_login(const std::string &login) { return keeper_.knows_login(login).code != Code::not_found; }

// By name: the groups that a process has are those of who started it, and stay when a login has left the group.
Result<KnownPeer> LocalUsers::look_up(std::uint32_t uid) {
    const Result<std::string> name = keeper_.user_name(uid);
    if (!name) return unknown(name.status());
    KnownPeer peer{*name, {}};
    if (peer.login.empty() || owner_or_root(uid) || !members_only_) return peer;
    peer.may_call = keeper_.check_login(peer.login);
    if (peer.may_call.code == Code::unreachable) return unknown(peer.may_call);
    return peer;
}

Status LocalUsers::unknown(const Status &why) {
    const Instant now = boot_clock();
    if (now < silence_told_ || keeper_.process().lost()) return why;
    silence_told_ = now + seconds(60);
    log_warn(why.text + ": users who have called this scheduler before are served, others wait");
    return why;
}

}  // namespace dcs::shell
