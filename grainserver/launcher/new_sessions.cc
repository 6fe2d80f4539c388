#include "grainserver/launcher/new_sessions.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "locks/process_stat.h"
#include "grainserver/files/small_file.h"
#include "grainserver/launcher/process_tree.h"
#include "grainserver/launcher/start_grain.h"

namespace dcs::launcher {
namespace {
// One look stays short, also beside a grain that forks for ever.
constexpr std::size_t processes_max = 512;

void add_numbers(const std::string &path, std::vector<pid_t> &pids) {
    const files::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char buffer[4096];
    const ssize_t n = fd ? ::read(fd.get(), buffer, sizeof buffer - 1) : 0;
    buffer[n > 0 ? n : 0] = 0;
    char *end = buffer;
    for (const char *at = buffer; pids.size() < processes_max; at = end) {
        const long pid = std::strtol(at, &end, 10);
        if (end == at) return;
        pids.push_back(static_cast<pid_t>(pid));
    }
}

void add_children(pid_t pid, std::vector<pid_t> &pids) {
    const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
    DIR *list = ::opendir(tasks.c_str());
    while (const dirent *entry = list != nullptr ? ::readdir(list) : nullptr)
        if (entry->d_name[0] != '.') add_numbers(tasks + "/" + entry->d_name + "/children", pids);
    if (list != nullptr) ::closedir(list);
}
}  // namespace

bool NewSessions::matter() { return ::access("/proc/self/autogroup", W_OK) == 0; }

// From our own children on: what lost its parent is one of them.
bool NewSessions::lower(const std::set<pid_t> &grains) {
    std::map<pid_t, bool> seen;
    std::vector<pid_t> tree = own_children();
    const pid_t own_session = ::getsid(0);
    bool all = true;
    for (std::size_t i = 0; i < tree.size(); ++i) {
        add_children(tree[i], tree);
        locks::ProcessStat stat;
        if (!locks::read_stat(tree[i], stat) || stat.session == own_session || grains.count(stat.session) != 0 ||
            seen.count(stat.session) != 0)
            continue;
        const auto known = seen_.find(stat.session);
        const bool done = (known != seen_.end() && known->second) || lower_session_priority(tree[i]);
        seen[stat.session] = done;
        all = all && done;
    }
    seen_ = std::move(seen);  // numbers of sessions that have ended come again
    return all;
}

}  // namespace dcs::launcher
