#include "grainserver/launcher/new_sessions.h"

#include <string>
#include <vector>

#include <unistd.h>

#include "process/table.h"

namespace dcs::launcher {
namespace {
// Bounds one scan, also if a grain forks endlessly.
constexpr std::size_t processes_max = 512;

void add_children(pid_t pid, std::vector<pid_t> &pids) {
    const std::string tasks = "/proc/" + std::to_string(pid) + "/task/";
    for (const int thread : numbers_in(tasks))
        for (const pid_t child : pids_in(tasks + std::to_string(thread) + "/children"))
            if (pids.size() < processes_max) pids.push_back(child);
}
}  // namespace

bool NewSessions::matter() {
    static const bool do_they = ::access("/proc/self/autogroup", W_OK) == 0;
    return do_they;
}

// Starts at the launcher's own children, which include all orphans.
bool NewSessions::lower(const std::set<pid_t> &grains, starter::StarterClient &starter) {
    std::map<pid_t, bool> seen;
    std::vector<pid_t> tree = own_children();
    const pid_t own_session = ::getsid(0);
    bool all = true;
    for (std::size_t i = 0; i < tree.size(); ++i) {
        add_children(tree[i], tree);
        ProcessStat stat;
        if (!read_stat(tree[i], stat) || stat.session == own_session || grains.count(stat.session) != 0 ||
            seen.count(stat.session) != 0)
            continue;
        const auto known = seen_.find(stat.session);
        const bool done = (known != seen_.end() && known->second) || starter.lower(tree[i]);
        seen[stat.session] = done;
        all = all && done;
    }
    seen_ = std::move(seen);  // forgets ended sessions, whose numbers are reused
    return all;
}

}  // namespace dcs::launcher
