#include "start_hint.h"

#include <cerrno>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "client/pool_path.h"
#include "pool_directory.h"
#include "locks/files/lock_search.h"
#include "process/table.h"

namespace dcs::commands {
namespace {

constexpr std::size_t most_service_bytes = 4096;
constexpr const char *unit_folders[] = {"/etc/systemd/system/", "/usr/local/lib/systemd/system/",
                                        "/usr/lib/systemd/system/", "/lib/systemd/system/"};

bool exists(const std::string &path) { return ::access(path.c_str(), F_OK) == 0; }

std::string at_scheduler_of(const std::string &service) {
    const std::string scheduler = scheduler_in(service);
    return scheduler.empty() ? "" : " at " + scheduler;
}

std::string group_name(unsigned gid) {
    const group *entry = ::getgrgid(gid);
    return entry != nullptr ? entry->gr_name : std::to_string(gid);
}

// A process listens there, which for some reason does not answer. Never waits.
bool listens(const std::string &socket) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (socket.size() >= sizeof address.sun_path) return false;
    socket.copy(address.sun_path, socket.size());
    const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    return fd &&
           (::connect(fd.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0 || errno == EAGAIN);
}

// Root, or the account whose scheduler it is.
bool may_start(const std::string &scheduler) {
    struct stat st = {};
    return ::geteuid() == 0 || (::stat(scheduler.c_str(), &st) == 0 && st.st_uid == ::geteuid());
}

// The scheduler there has noted that the backup's copy replaced it (scheduler/shell/mirror_host.h).
bool is_replaced(const std::string &scheduler) {
    const auto text = read_file(scheduler + "/attached", most_service_bytes);
    return text && text->starts_with("ended");
}

// Of a pool that `dcs up` did not make. Never a command line: without the options that it had, the scheduler would lock
// out hosts and users.
std::string start_by_hand(const std::string &directory) {
    if (listens(directory + "/scheduler/user.sock"))
        return "the scheduler runs, but does not answer: `dcs doctor` of root on this host says why";
    if (is_replaced(directory + "/scheduler"))
        return "the backup's copy has been made the scheduler of this pool: use that one, and do not start this one "
               "again (docs/BACKUP.md)";
    const bool may = may_start(directory + "/scheduler");
    if (directory != services_place || !has_service("dcs-scheduler"))
        return may ? "start dcs_scheduler again with the options that it had"
                   : "ask an administrator of this pool to start its scheduler again";
    if (!may) return "ask an administrator of this host to start its service dcs-scheduler";
    return "`systemctl start dcs-scheduler` starts it, `journalctl -u dcs-scheduler` says why it ended";
}

std::string behind(const std::string &more) { return more.empty() ? "" : "; " + more; }

// A daemon whose directory was below this one, which is gone; 0: none is seen.
int orphan_of(const std::string &directory) {
    for (const int pid : numbers_in("/proc")) {
        const std::string words = kernel_text("/proc/" + std::to_string(pid) + "/cmdline", most_service_bytes);
        const bool daemon = words.substr(0, words.find('\0')).find("/dcs_") != words.npos;
        if (!daemon) continue;
        for (const char *below : {"/scheduler", "/servers/"})
            if (words.find('\0' + directory + below) != words.npos) return pid;
    }
    return 0;
}

// Of this host's pool: a folder of root's on the way to it, or itself, that this user may not enter.
std::string closed_folder(const std::string &directory) {
    const auto host = client::host_conf();
    if (!host || host->dir != directory) return "";
    for (std::size_t end = 0; end != directory.npos;) {
        end = directory.find('/', end + 1);
        const std::string folder = directory.substr(0, end);
        struct stat st = {};
        if (::stat(folder.c_str(), &st) != 0) return "";
        if (::access(folder.c_str(), X_OK) != 0) return errno == EACCES && st.st_uid == 0 ? folder : "";
    }
    return "";
}

std::string no_pool(const std::string &directory) {
    if (const int pid = orphan_of(directory); pid != 0)
        return "the directory of this pool was removed: process " + std::to_string(pid) +
               " and the others end by themselves within minutes; then `dcs up` makes a new pool";
    if (const auto host = client::host_conf(); host && host->dir == directory)
        return "/etc/dcs/pool.conf names that directory as this host's pool: is its disk mounted? If the scheduler has "
               "moved to another host, remove the line there and let this host join that pool";
    const std::string part = part_in_far_pool();
    if (part.empty() && has_service("dcs-grainserver") && !has_service("dcs-scheduler"))
        return "this host has not joined a pool: `dcs token create` on the scheduler's host prints the command; "
               "`dcs up` starts a private pool";
    if (part.empty()) return "`dcs up` starts a private pool; for one in another directory set DCS_DIR";
    return part +
           ": run dcs on the scheduler's host, or let this host join with --role client too; `dcs up` starts a "
           "private pool";
}

}  // namespace

std::string scheduler_in(const std::string &file) {
    const std::string_view key = "DCS_SCHEDULER=";
    const auto text = read_file(file, most_service_bytes);
    for (std::string_view rest = text ? *text : std::string_view(); !rest.empty();)
        if (const std::string_view line = take_line(rest); line.starts_with(key))
            return std::string(line.substr(key.size()));
    return "";
}

bool has_service(const std::string &unit) {
    if (!exists("/run/systemd/system")) return false;
    for (const std::string folder : unit_folders)
        if (exists(folder + unit + ".service")) return true;
    return false;
}

bool daemon_runs_in(const std::string &directory) { return locks::is_held(directory + "/lock"); }

std::string part_in_far_pool() {
    const std::string server = services_place + std::string("/server/service"),
                      backup = services_place + std::string("/backup/service");
    if (exists(server)) return "this host runs grains for the pool" + at_scheduler_of(server);
    if (exists(backup)) return "this host has the backup of the pool" + at_scheduler_of(backup);
    return "";
}

std::string other_pool(const std::string &directory) {
    const auto own = client::own_pool_directory();
    const auto host = client::host_conf();
    if (!own || *own != directory || !host) return "";
    if (!host->dir.empty()) return "DCS_DIR=" + host->dir + " means the pool of this host";
    return host->scheduler.empty()
               ? ""
               : "without " + directory + " commands use the pool of this host, at " + host->scheduler;
}

std::string start_hint(const std::string &directory) {
    const std::string socket = directory + "/scheduler/user.sock";
    const Pool::Maker maker = Pool(directory).maker();
    struct stat st = {};
    if (maker == Pool::Maker::none) return no_pool(directory);
    if (::stat(socket.c_str(), &st) != 0 && errno == EACCES) {
        const std::string closed = closed_folder(directory);
        if (!closed.empty())
            return closed + " cannot be entered: an administrator of this host lets users in by `chmod 711 " +
                   shell_word(closed) + "`";
        return "the pool belongs to another account: without --dir and DCS_DIR, commands use your own pool or this "
               "host's; a pool of `dcs up` is for one user, one for several is installed by root (docs/OPERATING.md)";
    }
    const bool there = ::stat(socket.c_str(), &st) == 0;
    if (there && ::access(socket.c_str(), W_OK) != 0 && (st.st_mode & 020) != 0)
        return "you are not a member of the group " + group_name(st.st_gid) +
               ": ask an administrator of this host to add you, then log in again";
    const Daemon scheduler = Pool(directory).scheduler();
    const auto own = client::own_pool_directory();
    const std::string where = own && *own == directory ? "" : " --dir " + shell_word(directory);
    const std::string again = "`dcs up" + where + "` starts it again";
    if (scheduler.up && is_stopped(scheduler.pid))
        return "its process " + std::to_string(scheduler.pid) + " is stopped: `kill -CONT " +
               std::to_string(scheduler.pid) + "` lets it continue";
    // The one for grain servers comes after it: a scheduler that is starting has neither.
    if (!there && scheduler.up && ::stat((directory + "/scheduler/server.sock").c_str(), &st) == 0)
        return "its socket " + socket + " was removed while it runs: end process " + std::to_string(scheduler.pid) +
               " by SIGTERM, and " +
               (maker == Pool::Maker::dcs_up ? again : "start it again as before, with the options that it had") +
               "; grains run on";
    if (maker == Pool::Maker::dcs_up) {
        if (scheduler.up)
            return "it runs as process " + std::to_string(scheduler.pid) +
                   " and may answer later; if not, end that process, and " + again;
        return again + behind(other_pool(directory));
    }
    return start_by_hand(directory) + behind(other_pool(directory));
}

}  // namespace dcs::commands
