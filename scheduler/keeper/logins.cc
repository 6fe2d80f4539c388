#include "scheduler/keeper/logins.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include <grp.h>
#include <pwd.h>

#include "base/clock.h"
#include "daemon/peer_name.h"

namespace dcs::keeper {
namespace {

constexpr Duration time_of_one = seconds(3), time_beside_a_late_one = milliseconds(50), late = milliseconds(500);
constexpr Duration careful_for = seconds(30), answers_last = seconds(10);
constexpr std::size_t most_late = 64, entry_bytes = 4096, most_entry_bytes = std::size_t{1} << 20;

struct Search {
    std::optional<Result<std::string>> answer;
    Instant when{};  // of the answer
};
struct Searches {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, std::shared_ptr<Search>> under_way;  // or answered when its time was over, for the next
    Instant careful_until{};                                   // something was late: nothing has long
};

// Never destroyed: a thread that is late uses it.
Searches &searches() {
    static auto *const all = new Searches;
    return *all;
}

struct Entry {
    std::string name;
    gid_t group = 0;
};

// By getpwuid_r(3) these say that there is none, all others that it could not be looked up. glibc returns 0 for what is
// nowhere, and these where a service that is asked, as sssd, does not run.
Code code_of(int error) {
    const bool absent = error == ENOENT || error == ESRCH || error == EBADF || error == EPERM;
    return absent ? Code::not_found : Code::unreachable;
}

// `find` is getpwnam_r or getpwuid_r with its key.
template <class Find> Result<std::optional<Entry>> find_entry(const std::string &of, const Find &find) {
    for (std::vector<char> bytes(entry_bytes);;) {
        passwd entry{};
        passwd *found = nullptr;
        const int error = find(&entry, bytes.data(), bytes.size(), &found);
        if (error == ERANGE && bytes.size() < most_entry_bytes) bytes.resize(bytes.size() * 4);
        else if (found != nullptr) return std::optional(Entry{found->pw_name, found->pw_gid});
        else if (error == 0) return std::optional<Entry>();
        else if (error != EINTR)
            return fail_errno(code_of(error), "the user database of the scheduler's host on " + of, error);
    }
}

Result<std::optional<Entry>> entry_of(const std::string &user) {
    return find_entry(user, [&](passwd *entry, char *bytes, std::size_t size, passwd **found) {
        return ::getpwnam_r(user.c_str(), entry, bytes, size, found);
    });
}

// A group of a file of this host may name its members there; getgrouplist() asks all services.
bool is_member(const std::string &user, gid_t own, const LocalGroup &wanted) {
    if (own == wanted.number || std::ranges::count(wanted.members, user) > 0) return true;
    std::vector<gid_t> groups(64);
    auto count = static_cast<int>(groups.size());
    if (::getgrouplist(user.c_str(), own, groups.data(), &count) < 0) {
        groups.resize(static_cast<std::size_t>(std::max(count, 0)));
        if (::getgrouplist(user.c_str(), own, groups.data(), &count) < 0) return false;
    }
    groups.resize(static_cast<std::size_t>(std::max(count, 0)));
    return std::ranges::count(groups, wanted.number) > 0;
}

Result<std::string> membership(const std::string &user, const std::string &group) {
    const auto entry = entry_of(user);
    if (!entry && entry.status().code != Code::not_found) return entry.status();
    if (!entry || !*entry)
        return fail(Code::refused, user +
                                       " has no account on the scheduler's host: users of other hosts need an "
                                       "account with the same login name there");
    const auto wanted = find_group(group);
    if (!wanted && wanted.status().code != Code::not_found) return fail(Code::unreachable, wanted.status().text);
    if (!wanted)
        return fail(Code::refused, "the scheduler's host has no group " + group +
                                       ", whose members may use DCS (--group of dcs_scheduler names another)");
    if (!is_member(user, (*entry)->group, *wanted))
        return fail(Code::refused, user + " is not a member of the group " + group +
                                       " on the scheduler's host, which the use of DCS requires");
    return std::string();
}

}  // namespace

Result<std::string> in_time(const std::string &of, const std::function<Result<std::string>()> &look) {
    const Status silent = fail(Code::unreachable, "the user database of the scheduler's host does not answer on " + of);
    Searches &all = searches();
    std::unique_lock lock(all.mutex);
    const Instant begun = boot_clock();
    const auto own = all.under_way.find(of);
    const bool there = own != all.under_way.end() && (!own->second->answer || begun - own->second->when < answers_last);
    if (!there) {
        if (all.under_way.size() >= most_late)
            std::erase_if(all.under_way, [](const auto &one) { return one.second->answer.has_value(); });
        if (all.under_way.size() >= most_late) return silent;
        auto &search = all.under_way[of] = std::make_shared<Search>();
        try {
            std::thread([&all, look, search] {
                auto answer = look();
                const std::lock_guard hold(all.mutex);
                search->answer = std::move(answer);
                search->when = boot_clock();
                all.changed.notify_all();
            }).detach();
        } catch (const std::system_error &) {  // out of processes
            return all.under_way.erase(of), silent;
        }
    }
    const auto search = all.under_way[of];
    const Duration time = begun < all.careful_until ? time_beside_a_late_one : time_of_one;
    const bool over = all.changed.wait_for(lock, std::chrono::nanoseconds(time.ns), [&] { return !!search->answer; });
    if (boot_clock() - begun > late) all.careful_until = boot_clock() + careful_for;
    if (!over) return silent;
    all.under_way.erase(of);
    return *search->answer;
}

Result<std::string> login_of(std::uint32_t uid) {
    const std::string of = "uid " + std::to_string(uid);
    return in_time(of, [=]() -> Result<std::string> {
        const auto entry = find_entry(of, [&](passwd *into, char *bytes, std::size_t size, passwd **found) {
            return ::getpwuid_r(uid, into, bytes, size, found);
        });
        if (!entry) return entry.status();
        return *entry ? (*entry)->name : std::string();
    });
}

Status check_login(const std::string &user, const std::string &group) {
    if (group.empty()) return Status::ok();
    return in_time("user " + user + " and the group " + group, [=] { return membership(user, group); }).status();
}

Status knows_login(const std::string &user) {
    return in_time("user " + user,
                   [=]() -> Result<std::string> {
                       const auto entry = entry_of(user);
                       if (!entry) return entry.status();
                       if (!*entry) return fail(Code::not_found, "this host knows no login " + user);
                       return std::string();
                   })
        .status();
}

}  // namespace dcs::keeper
