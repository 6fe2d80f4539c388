#include "scheduler/keeper/login.h"

#include <algorithm>
#include <vector>

#include <grp.h>
#include <pwd.h>

namespace dcs::keeper {
namespace {

bool is_member(const std::string &user, gid_t own, gid_t wanted) {
    std::vector<gid_t> groups(64);
    auto count = static_cast<int>(groups.size());
    if (::getgrouplist(user.c_str(), own, groups.data(), &count) < 0) {
        groups.resize(static_cast<std::size_t>(std::max(count, 0)));
        if (::getgrouplist(user.c_str(), own, groups.data(), &count) < 0) return false;
    }
    groups.resize(static_cast<std::size_t>(std::max(count, 0)));
    return std::find(groups.begin(), groups.end(), wanted) != groups.end();
}

}  // namespace

Status check_login(const std::string &user, const std::string &group) {
    if (group.empty()) return Status::ok();
    const passwd *entry = ::getpwnam(user.c_str());
    if (entry == nullptr)
        return fail(Code::refused, user +
                                       " has no account on the scheduler's host: users of other hosts need an "
                                       "account with the same login name there");
    const gid_t own = entry->pw_gid;
    const struct group *found = ::getgrnam(group.c_str());
    if (found == nullptr)
        return fail(Code::refused, "the scheduler's host has no group " + group +
                                       ", whose members may use DCS "
                                       "(--group of dcs_scheduler names another)");
    if (!is_member(user, own, found->gr_gid))
        return fail(Code::refused, user + " is not a member of the group " + group +
                                       " on the scheduler's host, which "
                                       "the use of DCS requires");
    return Status::ok();
}

}  // namespace dcs::keeper
