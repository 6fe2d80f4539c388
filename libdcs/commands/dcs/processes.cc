#include "processes.h"

#include <algorithm>
#include <cerrno>
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

#include "pool.h"

namespace dcs::commands {
namespace {

constexpr std::size_t proc_bytes = 4u << 20;  // an environment is at most some MiB

std::string proc(int pid, const char *file) { return "/proc/" + std::to_string(pid) + "/" + file; }

std::string read_or_empty(const std::string &path) {
    auto text = read_file(path, proc_bytes);
    return text ? *text : std::string();
}

// Is SIGKILL waiting for the process or one of its threads?
bool kill_pending(int pid) {
    const std::string status = read_or_empty(proc(pid, "status"));
    for (const char *name : {"\nSigPnd:", "\nShdPnd:"}) {
        const std::size_t at = status.find(name);
        if (at == std::string::npos) continue;
        const unsigned long long mask =
            std::strtoull(status.c_str() + at + std::strlen(name), nullptr, 16);
        if (mask & (1ull << (SIGKILL - 1))) return true;
    }
    return false;
}

// The grain directory that a process has in its environment; empty if none.
std::string grain_directory(int pid) {
    static const std::string name("\0DCS_GRAIN_DIR=", 15);
    const std::string environment = std::string(1, '\0') + read_or_empty(proc(pid, "environ"));
    const std::size_t at = environment.find(name);
    return at == std::string::npos ? "" : environment.c_str() + at + name.size();
}

// Session leaders that the pid files of one server name and that are still the same process.
void recorded_leaders(const std::string &grains, const std::string &boot, std::set<int> &leaders) {
    DIR *list = ::opendir(grains.c_str());
    if (list == nullptr) return;
    while (const dirent *entry = ::readdir(list)) {
        if (entry->d_name[0] == '.') continue;
        const std::string text = read_or_empty(grains + "/" + entry->d_name + "/pid");
        int pid = 0;
        unsigned long long start = 0;
        char recorded_boot[64] = "";
        if (std::sscanf(text.c_str(), "%d %llu %63s", &pid, &start, recorded_boot) != 3 || pid <= 1)
            continue;
        if (boot != recorded_boot) continue;
        const ProcessFacts facts = facts_of(pid);
        if (facts.exists && facts.start == start) leaders.insert(pid);
    }
    ::closedir(list);
}

}  // namespace

Process::Process(int pid) : pid_(pid) {
    if (pid > 0) fd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

Process &Process::operator=(Process &&other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(fd_, other.fd_);
    return *this;
}

Process::~Process() {
    if (fd_ >= 0) ::close(fd_);
}

bool Process::gone(int wait_ms) const {
    if (fd_ < 0) return true;
    pollfd wanted = {fd_, POLLIN, 0};
    return ::poll(&wanted, 1, wait_ms) > 0;
}

void Process::signal(int number) const {
    if (fd_ >= 0) ::syscall(SYS_pidfd_send_signal, fd_, number, nullptr, 0);
}

ProcessFacts facts_of(int pid) {
    ProcessFacts facts;
    const std::string stat = read_or_empty(proc(pid, "stat"));
    const std::size_t after_name = stat.rfind(')');
    if (after_name == std::string::npos) return facts;
    char state = 0;
    int parent = 0, terminal = 0, foreground = 0;
    unsigned flags = 0;
    unsigned long long start = 0;
    const int read = std::sscanf(
        stat.c_str() + after_name + 1,
        " %c %d %d %d %d %d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state,
        &parent, &facts.group, &facts.session, &terminal, &foreground, &flags, &start);
    if (read != 8) return facts;
    facts.exists = state != 'X' && state != 'Z';
    facts.start = start;
    constexpr unsigned exiting = 0x4;  // PF_EXITING
    facts.dying = !facts.exists || (flags & exiting) != 0 || kill_pending(pid);
    return facts;
}

std::string boot_id() {
    std::string text = read_or_empty("/proc/sys/kernel/random/boot_id");
    text.erase(text.find_last_not_of(" \n") + 1);
    return text;
}

std::vector<int> all_processes() {
    std::vector<int> pids;
    DIR *list = ::opendir("/proc");
    if (list == nullptr) return pids;
    while (const dirent *entry = ::readdir(list)) {
        const int pid = std::atoi(entry->d_name);
        if (pid > 0) pids.push_back(pid);
    }
    ::closedir(list);
    return pids;
}

bool has_open(int pid, const std::string &path) {
    struct stat wanted = {}, st = {};
    if (::stat(path.c_str(), &wanted) != 0) return false;
    const std::string folder = proc(pid, "fd");
    DIR *list = ::opendir(folder.c_str());
    if (list == nullptr) return false;
    bool found = false;
    while (const dirent *entry = ::readdir(list)) {
        if (entry->d_name[0] == '.') continue;
        if (::stat((folder + "/" + entry->d_name).c_str(), &st) != 0) continue;
        found = found || (st.st_dev == wanted.st_dev && st.st_ino == wanted.st_ino);
    }
    ::closedir(list);
    return found;
}

std::vector<int> holders_of(const std::string &path) {
    std::vector<int> holders;
    for (int pid : all_processes())
        if (pid != ::getpid() && has_open(pid, path)) holders.push_back(pid);
    return holders;
}

std::vector<LiveProcess> live_grain_processes(const std::string &servers,
                                              const std::vector<std::string> &names) {
    const std::string boot = boot_id();
    std::set<int> leaders;
    for (const std::string &name : names)
        recorded_leaders(servers + "/" + name + "/grains", boot, leaders);
    std::vector<LiveProcess> found;
    for (int pid : all_processes()) {
        if (pid == ::getpid()) continue;
        const ProcessFacts facts = facts_of(pid);
        if (!facts.exists) continue;
        bool ours = leaders.count(facts.session) > 0 || leaders.count(facts.group) > 0;
        if (!ours) {
            const std::string directory = grain_directory(pid);
            ours = !directory.empty() &&
                   std::any_of(names.begin(), names.end(), [&](const std::string &name) {
                       return directory.rfind(servers + "/" + name + "/", 0) == 0;
                   });
        }
        if (ours) found.push_back({pid, facts.start});
    }
    return found;
}

}  // namespace dcs::commands
