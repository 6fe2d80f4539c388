#include "stop_daemons.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <set>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "commands/dcs/query/scheduler.h"
#include "base/clock.h"
#include "base/trusted_path.h"
#include "locks/files/lock_search.h"
#include "process/table.h"

namespace dcs::commands {
namespace {

constexpr std::size_t status_bytes = 64u << 10, pid_file_bytes = 4096;

std::string proc(int pid, const char *file) { return "/proc/" + std::to_string(pid) + "/" + file; }

// Is SIGKILL waiting for the process or one of its threads?
bool kill_pending(int pid) {
    const std::string status = kernel_text(proc(pid, "status"), status_bytes);
    for (const char *name : {"\nSigPnd:", "\nShdPnd:"}) {
        const std::size_t at = status.find(name);
        if (at == std::string::npos) continue;
        const unsigned long long mask = std::strtoull(status.c_str() + at + std::strlen(name), nullptr, 16);
        if (mask & (1ull << (SIGKILL - 1))) return true;
    }
    return false;
}

// The grain directory that a process has in its environment; empty if none.
std::string grain_directory(int pid) {
    static const std::string name("\0DCS_GRAIN_DIR=", 15);
    const std::string environment = std::string(1, '\0') + environment_of(pid);
    const std::size_t at = environment.find(name);
    return at == std::string::npos ? "" : environment.c_str() + at + name.size();
}

// Session leaders that the pid files of one server name and that are still the same process.
void add_leaders(const std::string &grains, const std::string &boot, std::set<int> &leaders) {
    DIR *list = ::opendir(grains.c_str());
    if (list == nullptr) return;
    while (const dirent *entry = ::readdir(list)) {
        if (entry->d_name[0] == '.') continue;
        const auto file = read_file(grains + "/" + entry->d_name + "/pid", pid_file_bytes);
        const std::string text = file ? *file : "";
        int pid = 0;
        unsigned long long start = 0;
        char recorded_boot[64] = "";
        if (std::sscanf(text.c_str(), "%d %llu %63s", &pid, &start, recorded_boot) != 3 || pid <= 1) continue;
        if (boot != recorded_boot) continue;
        if (const ProcessFacts facts = facts_of(pid); facts.exists && facts.start == start) leaders.insert(pid);
    }
    ::closedir(list);
}

std::set<int> leaders_of(const std::string &servers, const std::vector<std::string> &names) {
    const std::string boot = boot_id();
    std::set<int> leaders;
    for (const std::string &name : names) add_leaders(servers + "/" + name + "/grains", boot, leaders);
    return leaders;
}

constexpr int kill_wait_s = 20;  // for the kernel to tear down what was killed, on a busy host

// Pins the processes that hold the daemon's lock. The note says who took it; that it is still that
// process is certain when it has the file open and the lock is held after the process was pinned.
// A note of another process (killed before it was written, say): the process that has the file open.
std::vector<Process> pin_holders(const Daemon &daemon) {
    std::vector<Process> pinned;
    std::vector<int> candidates;
    if (daemon.pid > 0 && has_open(daemon.pid, daemon.lock)) candidates.push_back(daemon.pid);
    else candidates = holders_of(daemon.lock);
    for (int pid : candidates) {
        Process process(pid);
        if (process.good() && has_open(pid, daemon.lock) && locks::is_held(daemon.lock))
            pinned.push_back(std::move(process));
    }
    return pinned;
}

bool all_free(const std::vector<Daemon> &daemons) {
    for (const Daemon &daemon : daemons)
        if (locks::is_held(daemon.lock)) return false;
    return true;
}

void signal_holders(const std::vector<Daemon> &daemons, int number) {
    for (const Daemon &daemon : daemons) {
        if (!locks::is_held(daemon.lock)) continue;
        for (const Process &process : pin_holders(daemon)) process.signal(number);
    }
}

bool wait_all_free(const std::vector<Daemon> &daemons, int patience_s) {
    const Instant deadline = boot_clock() + seconds(patience_s);
    while (!all_free(daemons)) {
        if (boot_clock() > deadline) return false;
        pause_ms(10);
    }
    return true;
}

}  // namespace

Process::Process(int pid) : pid_(pid) {
    if (pid > 0) fd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool Process::gone(int wait_ms) const {
    if (!good()) return true;
    pollfd wanted = {fd_.get(), POLLIN, 0};
    return ::poll(&wanted, 1, wait_ms) > 0;
}

void Process::signal(int number) const {
    if (good()) ::syscall(SYS_pidfd_send_signal, fd_.get(), number, nullptr, 0);
}

ProcessFacts facts_of(int pid) {
    ProcessStat stat;
    if (!read_stat(pid, stat)) return {};
    const bool exists = stat.state != 'X' && stat.state != 'Z';
    return {exists, !exists || stat.exiting || kill_pending(pid), stat.session, stat.group, stat.start_time};
}

bool has_open(int pid, const std::string &path) {
    struct stat wanted = {}, st = {};
    if (::stat(path.c_str(), &wanted) != 0) return false;
    const std::string folder = proc(pid, "fd");
    for (const int fd : numbers_in(folder))
        if (::stat((folder + "/" + std::to_string(fd)).c_str(), &st) == 0 && st.st_dev == wanted.st_dev &&
            st.st_ino == wanted.st_ino)
            return true;
    return false;
}

std::vector<int> holders_of(const std::string &path) {
    std::vector<int> holders;
    for (const int pid : numbers_in("/proc"))
        if (pid != ::getpid() && has_open(pid, path)) holders.push_back(pid);
    return holders;
}

int running_grains(const std::string &servers, const std::vector<std::string> &names) {
    return static_cast<int>(leaders_of(servers, names).size());
}

std::vector<LiveProcess> live_grain_processes(const std::string &servers, const std::vector<std::string> &names) {
    const std::set<int> leaders = leaders_of(servers, names);
    std::vector<LiveProcess> found;
    for (const int pid : numbers_in("/proc")) {
        if (pid == ::getpid()) continue;
        const ProcessFacts facts = facts_of(pid);
        if (!facts.exists) continue;
        bool ours = leaders.count(facts.session) > 0 || leaders.count(facts.group) > 0;
        if (!ours) {
            const std::string directory = grain_directory(pid);
            ours = !directory.empty() && std::any_of(names.begin(), names.end(), [&](const std::string &name) {
                return directory.rfind(servers + "/" + name + "/", 0) == 0;
            });
        }
        if (ours) found.push_back({pid, facts.start});
    }
    return found;
}

std::vector<std::string> stop_daemons(const std::vector<Daemon> &daemons, int patience_s) {
    signal_holders(daemons, SIGTERM);
    const Instant deadline = boot_clock() + seconds(kill_wait_s);
    if (wait_all_free(daemons, patience_s)) return {};
    // Once more in each round: a holder may have handed its lock on to a child.
    while (!all_free(daemons) && boot_clock() < deadline + seconds(patience_s)) {
        signal_holders(daemons, SIGKILL);
        wait_all_free(daemons, 1);
    }
    std::vector<std::string> left;
    for (const Daemon &daemon : daemons)
        if (locks::is_held(daemon.lock)) left.push_back(daemon.role + " " + daemon.name);
    return left;
}

bool stays_up(const Daemon &daemon) {
    const Instant deadline = boot_clock() + seconds(kill_wait_s);
    // Seen alive twice: between taking its SIGKILL and being marked as exiting a process looks
    // sound.
    for (int seen = 0; seen < 2;) {
        if (!locks::is_held(daemon.lock)) return false;
        const int pid = locks::holder_of(daemon.lock);
        const bool sound = pid > 0 && !facts_of(pid).dying;
        seen = sound ? seen + 1 : 0;
        if (!sound && boot_clock() > deadline) return true;  // held by whom ever; starting another is in vain
        if (seen < 2) pause_ms(5);
    }
    return true;
}

int end_grains(const Pool &pool, const std::vector<std::string> &servers) {
    const Instant deadline = boot_clock() + seconds(kill_wait_s);
    std::set<int> killed;
    while (true) {
        const std::vector<LiveProcess> alive = live_grain_processes(pool.path("servers"), servers);
        if (alive.empty()) return static_cast<int>(killed.size());
        if (boot_clock() > deadline) return -1;
        for (const LiveProcess &grain : alive) {
            Process process(grain.pid);
            if (!process.good() || facts_of(grain.pid).start != grain.start) continue;
            process.signal(SIGKILL);
            killed.insert(grain.pid);
        }
        pause_ms(20);
    }
}

Status become_owner(const Pool &pool) {
    const auto owner = account_of_path(pool.directory());
    if (!owner) return owner.status();
    if (*owner != ::geteuid()) {
        constexpr gid_t no_group = 65534;
        const passwd *login = ::getpwuid(*owner);
        const gid_t group = login != nullptr ? login->pw_gid : no_group;
        const int groups = login != nullptr ? ::initgroups(login->pw_name, group) : ::setgroups(0, nullptr);
        if (groups != 0 || ::setresgid(group, group, group) != 0 || ::setresuid(*owner, *owner, *owner) != 0)
            return fail_errno(Code::refused, "cannot act as the owner of " + pool.directory(), errno);
    }
    struct stat st = {};
    if (::stat(pool.directory().c_str(), &st) != 0 || st.st_uid == ::geteuid()) return Status::ok();
    return fail(Code::refused, pool.directory() + " is the pool of another user");
}

Result<locks::AdaptiveLock> take_work_lock(const Pool &pool) {
    constexpr std::int64_t patience = 120'000'000'000;  // longer than the other one takes, if no daemon is slow
    return locks::take_dcs_atom(locks::DcsAtom::pool_work, pool.path("up.lock"), patience);
}

}  // namespace dcs::commands
