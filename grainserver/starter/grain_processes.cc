#include "grainserver/starter/grain_processes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/require.h"
#include "grainserver/files/grain_record.h"

namespace dcs::starter {
namespace {
constexpr Duration exec_time = milliseconds(200);
}  // namespace

std::string cookie(const std::string &grain_directory) {
    return "DCS_GRAIN_DIR=" + grain_directory + "/" + files::room_name;
}

std::vector<ProcessStat> members_of(const std::string &leaf, const Cgroups &cgroups) {
    std::vector<ProcessStat> found;
    for (const pid_t pid : cgroups.members(leaf)) {
        ProcessStat stat;
        if (read_stat(pid, stat) && stat.state != 'Z' && stat.state != 'X' && may_be_signalled(stat))
            found.push_back(stat);
    }
    return found;
}

std::optional<uid_t> account_of(int grain) {
    struct stat st {};
    if (::fstatat(grain, files::room_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode)) return {};
    return st.st_uid;
}

FoundProcesses look_for(const Orphan &orphan, const Cgroups &cgroups) {
    const std::string mark = cookie(orphan.directory);
    const ProcessTable table;
    const ProcessStat *leader = table.find(orphan.pid);
    const bool lives = leader != nullptr && leader->start_time == orphan.start_time;
    std::vector<pid_t> start;
    if (!orphan.leaf.empty()) start = cgroups.members(orphan.leaf);
    if (lives) start.push_back(orphan.pid);
    FoundProcesses found;
    for (const ProcessStat &p : table.all()) {
        if (!may_be_signalled(p) || p.start_time < orphan.start_time || !orphan.account) continue;
        const RunsAs runs = runs_as(p.pid, *orphan.account);
        found.unclear = found.unclear || runs == RunsAs::unclear;
        if (runs != RunsAs::yes) continue;
        const Carries answer = carries(p.pid, mark);
        if (answer == Carries::yes) start.push_back(p.pid);
        found.unclear = found.unclear || answer == Carries::unclear;
    }
    found.processes = table.family(start, lives ? orphan.pid : 0);
    return found;
}

bool kill_orphan(const Orphan &orphan, const Cgroups &cgroups, int seconds,
                 const std::function<void(const ProcessStat &, int)> &signal) {
    DCS_REQUIRE(!orphan.directory.empty(), "an orphan has a directory");
    const Instant deadline = boot_clock() + dcs::seconds(seconds), clear_by = boot_clock() + exec_time;
    for (;;) {
        if (!orphan.leaf.empty()) cgroups.seal(orphan.leaf);
        const FoundProcesses found = strike([&] { return look_for(orphan, cgroups); }, signal);
        if (found.processes.empty() && (!found.unclear || boot_clock() >= clear_by)) return true;
        if (boot_clock() >= deadline) return false;
        const timespec pause{0, 10'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

}  // namespace dcs::starter
