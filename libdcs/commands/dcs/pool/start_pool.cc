#include "start_pool.h"

#include <cerrno>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/trusted_path.h"
#include "process/table.h"
#include "start_daemon.h"
#include "stop_daemons.h"

namespace dcs::commands {

namespace {

Status start_backup(const Pool &pool, std::vector<std::string> &started) {
    const Daemon backup = pool.backup();
    if (stays_up(backup)) return Status::ok();
    const DaemonStart start{"dcs_backupd",
                            {"--dir", backup.directory, "--scheduler", pool.path("scheduler/server.sock")},
                            backup.directory};
    if (Status s = start_daemon(start); !s)
        return fail(s.code, "the backup did not start: " + s.text + "\n  its log: " + backup.directory + "/log");
    started.push_back("backup");
    return Status::ok();
}

}  // namespace

Status is_ours(const std::string &directory) {
    const auto owner = account_of_path(directory);
    if (!owner) return owner.status();
    struct stat st = {};
    const bool ours = *owner == ::geteuid() && (::stat(directory.c_str(), &st) != 0 || st.st_uid == *owner);
    return ours ? Status::ok() : fail(Code::refused, directory + " belongs to another user");
}

Status only_a_pool(const Pool &pool) {
    struct stat st = {};
    const std::string &directory = pool.directory();
    if (::stat(directory.c_str(), &st) != 0) return fail_errno(Code::io_error, directory, errno);
    if (!S_ISDIR(st.st_mode)) return fail(Code::io_error, directory + " is not a directory");
    if (Status s = is_ours(directory); !s) return s;
    if (pool.maker() == Pool::Maker::other) return fail(Code::refused, not_by_up(pool));
    const bool recorded = ::access(pool.path("pool").c_str(), F_OK) == 0;
    DIR *list = recorded ? nullptr : ::opendir(directory.c_str());
    std::string stranger;
    while (const dirent *entry = list != nullptr ? ::readdir(list) : nullptr) {
        const std::string name = entry->d_name;
        bool known = false;
        for (const char *ours : {".", "..", "pool", "pool.tmp", "up.lock", "maps.lock", "scheduler", "backup", "page",
                                 "servers", "pilots", "jobs", "lost+found"})
            known = known || name == ours;
        if (!known) stranger = name;
    }
    if (list != nullptr) ::closedir(list);
    if (!stranger.empty())
        return fail(Code::refused, directory + " is not empty and not a pool (it holds " + stranger + ")");
    if ((st.st_mode & 077) != 0 && ::chmod(directory.c_str(), 0700) != 0)
        return fail_errno(Code::io_error, "cannot make " + directory + " private", errno);
    return Status::ok();
}

bool only_the_copy_is_left(const Pool &pool) {
    return !stays_up(pool.scheduler()) && ::access(pool.path("scheduler/state").c_str(), F_OK) != 0 &&
           ::access(pool.path("backup/mirror/current").c_str(), F_OK) == 0;
}

Status start_missing(const Pool &pool, const PoolNumbers &numbers, std::vector<std::string> &started) {
    const Daemon scheduler = pool.scheduler();
    if (!stays_up(scheduler)) {
        DaemonStart start{
            "dcs_scheduler",
            {"--dir", scheduler.directory, "--hosts", scheduler.directory + "/hosts", "--mirror", numbers.mirror},
            scheduler.directory};
        if (!numbers.listen.empty()) start.arguments.insert(start.arguments.end(), {"--tls", numbers.listen});
        if (Status s = start_daemon(start); !s)
            return fail(s.code,
                        "the scheduler did not start: " + s.text + "\n  its log: " + scheduler.directory + "/log");
        started.push_back("scheduler");
    } else if (is_stopped(scheduler.pid)) {
        return fail(Code::unreachable, "the scheduler does not answer");
    }
    if (Status s = start_backup(pool, started); !s) return s;
    for (int i = 1; i <= numbers.servers; ++i) {
        const std::string name = "local" + std::to_string(i);
        const Daemon server = pool.server(name);
        if (stays_up(server)) continue;
        DaemonStart start{"dcs_grainserver",
                          {"--name", name, "--dir", server.directory, "--scheduler", pool.path("scheduler/server.sock"),
                           "--backup", pool.path("backup/backup.sock"), "--binary-class", binary_class_of_this_host(),
                           "--courtesy", numbers.courtesy, "--log-level", "error", "--run-as", "self"},
                          server.directory};
        if (i > 1) start.arguments.insert(start.arguments.end(), {"--resources", "no-devices"});  // local1 has them
        if (Status s = start_daemon(start); !s)
            return fail(s.code, "grain server " + name + " did not start: " + s.text +
                                    "\n  its log: " + server.directory + "/log");
        started.push_back(name);
    }
    return Status::ok();
}

Status start_page(const Pool &pool, std::vector<std::string> &started) {
    const Daemon page = pool.page();
    if (stays_up(page)) return Status::ok();
    if (Status made = make_directories(page.directory); !made) return made;
    const DaemonStart start{"dcs", {"page", "--dir", pool.directory()}, page.directory};
    if (Status s = start_daemon(start); !s) return fail(s.code, "the page did not start: " + s.text);
    started.push_back("page");
    return Status::ok();
}

}  // namespace dcs::commands
