#include "grainserver/launcher/process_tree.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <set>

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/files/small_file.h"

namespace dcs::launcher {
namespace {
constexpr pid_t kernel_threads = 2;  // their parent; they have no environment
bool read_children_file(std::vector<pid_t> &pids) {
    const std::string path = "/proc/self/task/" + std::to_string(::getpid()) + "/children";
    const files::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return false;
    std::string text;
    char buffer[4096];
    for (;;) {
        const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        if (n == 0) break;
        text.append(buffer, static_cast<std::size_t>(n));
    }
    const char *at = text.data(), *const end = at + text.size();
    while (at < end) {
        pid_t pid = 0;
        const auto [stop, error] = std::from_chars(at, end, pid);
        if (error != std::errc{}) break;
        pids.push_back(pid);
        at = stop + 1;
    }
    return true;
}

constexpr Duration exec_patience = milliseconds(200);
constexpr int stop_rounds = 40;

bool is_grain_like(const locks::ProcessStat &p) {
    return p.pid != ::getpid() && p.pid != kernel_threads && p.parent != kernel_threads;
}
}  // namespace

std::vector<pid_t> own_children() {
    std::vector<pid_t> pids;
    if (read_children_file(pids)) return pids;
    pids.clear();
    const pid_t self = ::getpid();
    for (const locks::ProcessStat &p : locks::all_processes())
        if (p.parent == self) pids.push_back(p.pid);
    return pids;
}

void signal_exactly(const locks::ProcessStat &process, int number) {
    const files::Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
    const bool no_pidfds = !pidfd && errno == ENOSYS;
    locks::ProcessStat now;
    if (!locks::read_stat(process.pid, now) || now.start_time != process.start_time) return;
    if (pidfd) ::syscall(SYS_pidfd_send_signal, pidfd.get(), number, nullptr, 0);
    else if (no_pidfds) ::kill(process.pid, number);
}

std::string cookie(const std::string &grain_directory) {
    return "DCS_GRAIN_DIR=" + grain_directory + "/" + files::room_name;
}

Carries carries(pid_t pid, const std::string &mark) {
    const std::string environment = locks::environment_of(pid);
    if (environment.empty()) return Carries::unclear;
    return locks::has_variable(environment, mark) ? Carries::yes : Carries::no;
}

ProcessTable::ProcessTable() {
    for (const locks::ProcessStat &p : locks::all_processes())
        if (p.state != 'Z' && p.state != 'X') all_.push_back(p);
    for (std::size_t i = 0; i < all_.size(); ++i) {
        by_pid_.emplace(all_[i].pid, i);
        children_.emplace(all_[i].parent, i);
    }
}

const locks::ProcessStat *ProcessTable::find(pid_t pid) const {
    const auto found = by_pid_.find(pid);
    return found == by_pid_.end() ? nullptr : &all_[found->second];
}

std::vector<locks::ProcessStat> ProcessTable::family(const std::vector<pid_t> &start, pid_t session) const {
    std::vector<locks::ProcessStat> found;
    std::set<pid_t> known;
    const auto add = [&](const locks::ProcessStat &p) {
        if (is_grain_like(p) && known.insert(p.pid).second) found.push_back(p);
    };
    for (const pid_t pid : start)
        if (const locks::ProcessStat *p = find(pid)) add(*p);
    for (const locks::ProcessStat &p : all_)
        if (session > 1 && p.session == session) add(p);
    for (std::size_t i = 0; i < found.size(); ++i)
        for (auto [at, end] = children_.equal_range(found[i].pid); at != end; ++at) add(all_[at->second]);
    return found;
}

std::vector<locks::ProcessStat> members_of(const std::string &leaf, const Cgroups &cgroups) {
    std::vector<locks::ProcessStat> found;
    for (const pid_t pid : cgroups.members(leaf)) {
        locks::ProcessStat stat;
        if (locks::read_stat(pid, stat) && stat.state != 'Z' && stat.state != 'X' && is_grain_like(stat))
            found.push_back(stat);
    }
    return found;
}

Found strike(const std::function<Found()> &look) {
    std::set<std::pair<pid_t, std::uint64_t>> stopped;
    Found found;
    for (int round = 0; round < stop_rounds; ++round) {
        found = look();
        bool any = false;
        for (const locks::ProcessStat &p : found.processes)
            if (stopped.insert({p.pid, p.start_time}).second) {
                signal_exactly(p, SIGSTOP);
                any = true;
            }
        if (!any) break;
    }
    for (const locks::ProcessStat &p : found.processes) signal_exactly(p, SIGKILL);
    return found;
}

Found look_for(const Orphan &orphan, const Cgroups &cgroups) {
    const std::string mark = cookie(orphan.directory);
    const ProcessTable table;
    const locks::ProcessStat *leader = table.find(orphan.pid);
    const bool lives = leader != nullptr && leader->start_time == orphan.start_time;
    std::vector<pid_t> start = cgroups.members(orphan.leaf);
    if (lives) start.push_back(orphan.pid);
    Found found;
    for (const locks::ProcessStat &p : table.all()) {
        if (!is_grain_like(p) || p.start_time < orphan.start_time) continue;
        const Carries answer = carries(p.pid, mark);
        if (answer == Carries::yes) start.push_back(p.pid);
        found.unclear = found.unclear || answer == Carries::unclear;
    }
    found.processes = table.family(start, lives ? orphan.pid : 0);
    return found;
}

bool kill_orphan(const Orphan &orphan, const Cgroups &cgroups, int seconds) {
    const Instant deadline = boot_clock() + dcs::seconds(seconds), clear_by = boot_clock() + exec_patience;
    for (;;) {
        cgroups.seal(orphan.leaf);
        const Found found = strike([&] { return look_for(orphan, cgroups); });
        if (found.processes.empty() && (!found.unclear || boot_clock() >= clear_by)) return true;
        if (boot_clock() >= deadline) return false;
        const timespec pause{0, 10'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

}  // namespace dcs::launcher
