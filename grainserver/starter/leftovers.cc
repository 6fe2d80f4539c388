#include "grainserver/starter/leftovers.h"

#include <sstream>

#include <fcntl.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/planted.h"
#include "grainserver/files/owner_rules.h"
#include "process/table.h"

namespace dcs::starter {
namespace {

constexpr int only_name = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

constexpr int listed_at_once = 2000, looked_at_once = 50;  // names, until the clock is looked at
constexpr std::size_t table_max = 4u << 20;

std::set<uid_t> with_processes() {
    std::set<uid_t> uids;
    for (const int pid : numbers_in("/proc")) {
        struct stat st {};
        if (::stat(("/proc/" + std::to_string(pid)).c_str(), &st) == 0) uids.insert(st.st_uid);
    }
    return uids;
}

// Calls `remove` with the number of each object of a kind that the uid made. Its owner can be changed, who made it not.
template <class Remove> void each_of(const char *kind, uid_t uid, Remove remove) {
    std::istringstream table(kernel_text(std::string("/proc/sysvipc/") + kind, table_max));
    std::string line, word;
    std::getline(table, line);
    std::istringstream head(line);
    int at = 0, id_at = -1, maker_at = -1;
    for (; head >> word; ++at) {
        if (word == std::string(kind) + "id" || word == "msqid") id_at = at;
        if (word == "cuid") maker_at = at;
    }
    while (std::getline(table, line)) {
        std::istringstream row(line);
        long long value = 0, id = -1, maker = -1;
        for (int i = 0; row >> value; ++i) {
            if (i == id_at) id = value;
            if (i == maker_at) maker = value;
        }
        if (id >= 0 && maker == static_cast<long long>(uid)) remove(static_cast<int>(id));
    }
}

void remove_segments(uid_t uid) {
    each_of("shm", uid, [](int id) { ::shmctl(id, IPC_RMID, nullptr); });
    each_of("sem", uid, [](int id) { ::semctl(id, 0, IPC_RMID); });
    each_of("msg", uid, [](int id) { ::msgctl(id, IPC_RMID, nullptr); });
}

}  // namespace

LeftNames::LeftNames(const std::vector<std::string> &places, const std::set<uid_t> &ended,
                     std::function<bool(uid_t)> has_login)
    : ended_(ended), has_login_(std::move(has_login)) {
    for (const std::string &path : places) {
        Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        struct stat st {};
        // Without the sticky bit others could have put the names there in their owner's name.
        if (!fd || ::fstat(fd.get(), &st) != 0 || (st.st_mode & S_ISVTX) == 0) continue;
        places_.push_back({std::move(fd), {}});
    }
}

// Nothing: it is gone, or a directory where another file system is mounted, which is asked nothing: it need not answer.
std::optional<LeftNames::Seen> LeftNames::look(int directory, const std::string &name) {
    constexpr int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC | AT_EMPTY_PATH;
    struct statx all {
    }, st{};
    if (::statx(directory, "", flags, STATX_INO, &all) != 0) return {};
    if (::statx(directory, name.c_str(), flags, STATX_TYPE | STATX_MODE | STATX_UID | STATX_INO, &st) != 0) return {};
    const bool mounted = st.stx_dev_major != all.stx_dev_major || st.stx_dev_minor != all.stx_dev_minor ||
                         (!name.empty() && (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0);
    if (mounted && S_ISDIR(st.stx_mode)) return {};
    return Seen{st.stx_uid, st.stx_mode, ::makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino};
}

bool LeftNames::may_enter(uid_t owner) {
    if (has_ended(owner)) return true;
    if (planted("starter.own_directories_only")) return false;
    const auto [at, fresh] = enters_.try_emplace(owner);
    if (fresh) at->second = !has_login_(owner);
    return at->second;
}

std::optional<uid_t> LeftNames::owner() const {
    return levels_.empty() ? std::nullopt : std::optional(levels_.back().seen.owner);
}

bool LeftNames::read_more() {
    Names &n = names();
    if (n.all && !(n.parts && n.removed)) return false;
    // Again: where positions are counts, what was removed has moved others into parts that were read.
    if (n.all) n = Names();
    n.all = true;
    const ActAs user(owner().value_or(0), owner().value_or(0));
    const Fd fd(::openat(here(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::lseek(fd.get(), n.next, SEEK_SET) != n.next) return true;
    const auto all = read_names(fd.get(), listed_at_once, n.left);
    n.next = ::lseek(fd.get(), 0, SEEK_CUR);
    n.all = !all || *all || n.next < 0;
    n.parts = n.parts || !n.all;
    return true;
}

bool LeftNames::remove(const std::string &name, const Seen &seen) {
    const std::optional<uid_t> around = owner();
    const bool by_directory = around && has_ended(*around);
    if (!by_directory && !has_ended(seen.owner)) return false;
    const uid_t by = by_directory ? *around : seen.owner;
    const ActAs user(by, by);
    const bool gone = ::unlinkat(here(), name.c_str(), S_ISDIR(seen.mode) ? AT_REMOVEDIR : 0) == 0;
    names().removed = names().removed || gone;
    return gone;
}

void LeftNames::take(const std::string &name) {
    std::optional<Seen> seen;
    {
        const ActAs user(owner().value_or(0), owner().value_or(0));
        seen = look(here(), name);
    }
    if (!seen || remove(name, *seen) || !S_ISDIR(seen->mode) || !may_enter(seen->owner)) return;
    enter(name, *seen);
}

// Its owner may have closed it to others, or, if it has ended, to itself.
void LeftNames::enter(const std::string &name, const Seen &seen) {
    Fd fd;
    {
        const uid_t by = owner().value_or(seen.owner);
        const ActAs user(by, by);
        fd = Fd(::openat(here(), name.c_str(), only_name));
    }
    const auto same = fd ? look(fd.get(), "") : std::nullopt;
    if (!same || same->device != seen.device || same->inode != seen.inode || same->owner != seen.owner) return;
    const ActAs user(seen.owner, seen.owner);
    if (has_ended(seen.owner) && (same->mode & 0700) != 0700)
        (void)::chmod(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), 0700);
    levels_.push_back({name, seen, {}});
    here_ = std::move(fd);
}

// The level above is worked on again, if it is still the one from which this one was entered; else the tree stays.
void LeftNames::leave() {
    const Level left = std::move(levels_.back());
    levels_.pop_back();
    if (levels_.empty()) {
        here_ = Fd();
    } else {
        Fd above(::openat(here_.get(), "..", only_name));
        const auto seen = above ? look(above.get(), "") : std::nullopt;
        const Seen &known = levels_.back().seen;
        if (!seen || seen->device != known.device || seen->inode != known.inode) {
            levels_.clear();
            here_ = Fd();
            return;
        }
        here_ = std::move(above);
    }
    (void)remove(left.name, left.seen);
}

bool LeftNames::go_on(int names) {
    for (; names > 0; --names) {
        if (places_.empty() || ++looked_at_ > names_max) return true;
        std::vector<std::string> &left = this->names().left;
        if (left.empty()) {
            if (read_more()) continue;
            if (levels_.empty()) places_.pop_back();
            else leave();
            continue;
        }
        const std::string name = std::move(left.back());
        left.pop_back();
        take(name);
    }
    return false;
}

Leftovers::Left Leftovers::go_on(uid_t uid) {
    const std::set<uid_t> busy = with_processes();
    std::erase_if(ended_, [&](uid_t one) { return busy.count(one) != 0; });
    if (now_on_ != uid || busy.count(uid) != 0) {
        names_.reset();
        now_on_.reset();
    }
    if (busy.count(uid) != 0) return Left::in_use;
    ended_.insert(uid);
    if (!now_on_) {
        now_on_ = uid;
        remove_segments(uid);
        names_.emplace(scratch_, ended_, [](uid_t of) { return bool(files::logins_of_this_host().name_of(of)); });
    }
    const Instant until = boot_clock() + at_once_;
    while (!names_->go_on(looked_at_once))
        if (boot_clock() >= until && !planted("starter.clears_at_once")) return Left::more;
    names_.reset();
    now_on_.reset();
    return Left::nothing;
}

}  // namespace dcs::starter
