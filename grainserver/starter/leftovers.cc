#include "grainserver/starter/leftovers.h"

#include <sstream>

#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include "base/files.h"
#include "grainserver/files/owner_rules.h"
#include "process/table.h"

namespace dcs::starter {
namespace {
constexpr int names_at_once = 2000;
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
    if (!names_->go_on(names_at_once)) return Left::more;
    names_.reset();
    now_on_.reset();
    return Left::nothing;
}

}  // namespace dcs::starter
