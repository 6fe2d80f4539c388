#include "process/table.h"

#include <cerrno>
#include <csignal>
#include <set>

#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/require.h"

namespace dcs {
namespace {
constexpr int stop_rounds = 40;
}  // namespace

bool may_be_signalled(const ProcessStat &p) { return p.pid > 1 && p.pid != ::getpid() && !p.of_kernel; }

std::vector<pid_t> own_children() {
    static const bool listed = ::access("/proc/thread-self/children", R_OK) == 0;  // else the kernel lacks the list
    if (listed) return pids_in("/proc/self/task/" + std::to_string(::getpid()) + "/children");
    std::vector<pid_t> pids;
    const pid_t self = ::getpid();
    for (const ProcessStat &p : all_processes())
        if (p.parent == self) pids.push_back(p.pid);
    return pids;
}

void signal_exactly(const ProcessStat &process, int number, const std::function<bool()> &allowed) {
    DCS_REQUIRE(process.pid > 1, "pids 0 and 1 are never signalled");
    const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
    const bool no_pidfds = !pidfd && errno == ENOSYS;
    ProcessStat now;
    if (!read_stat(process.pid, now) || now.start_time != process.start_time || (allowed && !allowed())) return;
    if (pidfd) ::syscall(SYS_pidfd_send_signal, pidfd.get(), number, nullptr, 0);
    else if (no_pidfds) ::kill(process.pid, number);
}

Carries carries(pid_t pid, const std::string &mark) {
    const std::string environment = environment_of(pid);
    if (environment.empty()) return Carries::unclear;
    return has_variable(environment, mark) ? Carries::yes : Carries::no;
}

ProcessTable::ProcessTable() {
    for (const ProcessStat &p : all_processes(&missed_))
        if (p.state != 'Z' && p.state != 'X') all_.push_back(p);
    for (std::size_t i = 0; i < all_.size(); ++i) {
        by_pid_.emplace(all_[i].pid, i);
        children_.emplace(all_[i].parent, i);
    }
}

const ProcessStat *ProcessTable::find(pid_t pid) const {
    const auto found = by_pid_.find(pid);
    return found == by_pid_.end() ? nullptr : &all_[found->second];
}

std::vector<ProcessStat> ProcessTable::family(const std::vector<pid_t> &start, pid_t session) const {
    std::vector<ProcessStat> found;
    std::set<pid_t> known;
    const auto add = [&](const ProcessStat &p) {
        if (may_be_signalled(p) && known.insert(p.pid).second) found.push_back(p);
    };
    for (const pid_t pid : start)
        if (const ProcessStat *p = find(pid)) add(*p);
    for (const ProcessStat &p : all_)
        if (session > 1 && p.session == session) add(p);
    for (std::size_t i = 0; i < found.size(); ++i)
        for (auto [at, end] = children_.equal_range(found[i].pid); at != end; ++at) add(all_[at->second]);
    return found;
}

FoundProcesses strike(const std::function<FoundProcesses()> &look,
                      const std::function<void(const ProcessStat &, int)> &signal) {
    std::set<std::pair<pid_t, std::uint64_t>> stopped;
    FoundProcesses found;
    for (int round = 0; round < stop_rounds; ++round) {
        found = look();
        bool any = false;
        for (const ProcessStat &p : found.processes)
            if (stopped.insert({p.pid, p.start_time}).second) {
                signal(p, SIGSTOP);
                any = true;
            }
        if (!any) break;
    }
    for (const ProcessStat &p : found.processes) signal(p, SIGKILL);
    return found;
}

}  // namespace dcs
