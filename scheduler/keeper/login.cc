#include "scheduler/keeper/login.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
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

constexpr auto search_for = std::chrono::seconds(3);
constexpr int most_silent = 4;
constexpr std::size_t entry_bytes = 65536;

struct Search {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false, found = false;
};
std::atomic<int> searches{0};  // under way; one may never end

void search(const std::string &user, Search &of) {
    std::vector<char> bytes(entry_bytes);
    passwd entry{};
    passwd *found = nullptr;
    (void)::getpwnam_r(user.c_str(), &entry, bytes.data(), bytes.size(), &found);
    const std::lock_guard<std::mutex> guard(of.mutex);
    of.over = true;
    of.found = found != nullptr;
    of.changed.notify_one();
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

// By a thread of its own, which is left alone when it does not come back: the keeper has other work.
Status knows_login(const std::string &user) {
    const Status silent = fail(Code::unreachable, "it is not known whether there is a login " + user);
    if (searches >= most_silent) return silent;
    const auto own = std::make_shared<Search>();
    ++searches;
    try {
        std::thread([own, user] {
            search(user, *own);
            --searches;
        }).detach();
    } catch (const std::system_error &) {  // out of processes
        --searches;
        return silent;
    }
    std::unique_lock<std::mutex> lock(own->mutex);
    if (!own->changed.wait_for(lock, search_for, [&] { return own->over; })) return silent;
    return own->found ? Status::ok() : fail(Code::not_found, "this host knows no login " + user);
}

}  // namespace dcs::keeper
