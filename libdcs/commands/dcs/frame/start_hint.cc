#include "start_hint.h"

#include <cerrno>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/pool_path.h"
#include "pool_directory.h"

namespace dcs::commands {
namespace {

std::string group_name(unsigned gid) {
    const group *entry = ::getgrgid(gid);
    return entry != nullptr ? entry->gr_name : std::to_string(gid);
}

// A pool of the user's own goes before that of the host, also one that was forgotten.
std::string other_pool(const std::string &directory) {
    const auto own = client::own_pool_directory();
    const auto host = client::host_conf();
    if (!own || *own != directory || !host || host->dir.empty()) return "";
    return "; DCS_DIR=" + host->dir + " means the pool of this host";
}

}  // namespace

std::string start_hint(const std::string &directory) {
    const std::string socket = directory + "/scheduler/user.sock";
    const Pool::Maker maker = Pool(directory).maker();
    struct stat st = {};
    if (maker == Pool::Maker::none) return "`dcs up` starts a private pool; for one in another directory set DCS_DIR";
    if (::stat(socket.c_str(), &st) != 0 && errno == EACCES)
        return "the pool belongs to another account: without --dir and DCS_DIR, commands use your own pool or this "
               "host's";
    const bool there = ::stat(socket.c_str(), &st) == 0;
    if (there && ::access(socket.c_str(), W_OK) != 0 && (st.st_mode & 020) != 0)
        return "you are not a member of the group " + group_name(st.st_gid) +
               ": ask an administrator of this host to add you, then log in again";
    if (maker == Pool::Maker::dcs_up) return "`dcs up` starts it again" + other_pool(directory);
    return "ask an administrator of this pool to restart `dcs_scheduler --dir " + directory + "/scheduler`" +
           other_pool(directory);
}

}  // namespace dcs::commands
