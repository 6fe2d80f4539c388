#include "grainserver/starter/leftovers.h"

#include <sstream>

#include <fcntl.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/files.h"
#include "process/stat.h"

namespace dcs::starter {
namespace {
constexpr int names_at_once = 2000;
constexpr std::size_t table_max = 4u << 20;

bool has_processes(uid_t uid) {
    for (const int pid : numbers_in("/proc")) {
        struct stat st {};
        if (::stat(("/proc/" + std::to_string(pid)).c_str(), &st) == 0 && st.st_uid == uid) return true;
    }
    return false;
}

// The names of the place that are the uid's. Without the sticky bit others could have put them there in its name.
std::vector<std::string> names_of(int place, uid_t uid) {
    struct stat st {};
    const Result<std::vector<std::string>> names = list_directory(place);
    if (!names || ::fstat(place, &st) != 0 || (st.st_mode & S_ISVTX) == 0) return {};
    std::vector<std::string> own;
    for (const std::string &name : *names)
        if (::fstatat(place, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == uid) own.push_back(name);
    return own;
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

// False: there is more.
bool Leftovers::remove_some() {
    const ActAs user(*now_on_, *now_on_);
    for (int left = names_at_once; left > 0; --left) {
        if (tree_) {
            const auto done = tree_->go_on(names_at_once);
            if (done && !*done) return false;
            tree_.reset();  // what resists stays
        }
        while (!places_.empty() && places_.back().names.empty()) places_.pop_back();
        if (places_.empty()) return true;
        tree_.emplace(places_.back().place.get(), places_.back().names.back());
        places_.back().names.pop_back();
    }
    return false;
}

Leftovers::Left Leftovers::go_on(uid_t uid) {
    const bool in_use = has_processes(uid);
    if (now_on_ != uid || in_use) {
        tree_.reset();
        places_.clear();
        now_on_.reset();
    }
    if (in_use) return Left::in_use;
    if (!now_on_) {
        now_on_ = uid;
        remove_segments(uid);
        for (const std::string &path : scratch_) {
            Fd place(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            if (!place) continue;
            std::vector<std::string> names = names_of(place.get(), uid);
            places_.push_back({std::move(place), std::move(names)});
        }
    }
    if (!remove_some()) return Left::more;
    now_on_.reset();
    return Left::nothing;
}

}  // namespace dcs::starter
