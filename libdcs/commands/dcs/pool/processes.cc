#include "processes.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <poll.h>
#include <set>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "commands/dcs/frame/pool_directory.h"
#include "process/stat.h"

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
        const ProcessFacts facts = facts_of(pid);
        if (facts.exists && facts.start == start) leaders.insert(pid);
    }
    ::closedir(list);
}

std::set<int> leaders_of(const std::string &servers, const std::vector<std::string> &names) {
    const std::string boot = boot_id();
    std::set<int> leaders;
    for (const std::string &name : names) add_leaders(servers + "/" + name + "/grains", boot, leaders);
    return leaders;
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

}  // namespace dcs::commands
