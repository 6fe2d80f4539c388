// Attributes orphaned processes to grains. All orphans become children of the launcher, so they are identified by
// properties that the kernel guarantees: the control group that a process cannot leave, and the account that it cannot
// change. The environment only distinguishes grains of one account, which could signal each other anyway.
#include <algorithm>
#include <csignal>

#include <unistd.h>

#include "base/clock.h"
#include "base/planted.h"
#include "base/require.h"
#include "grainserver/files/say.h"
#include "grainserver/launcher/launcher.h"

namespace dcs::launcher {
namespace {
constexpr Duration chase_time = milliseconds(100);  // bounds the time without other work; the next chase follows soon

bool same_account(const files::Account &a, const files::Account &b) {
    return planted("launcher.believe_environment") || (a.change == b.change && (!a.change || a.uid == b.uid));
}
}  // namespace

std::set<pid_t> Launcher::not_strays() const {
    DCS_REQUIRE(keeper_.pid() != ::getpid(), "the keeper is another process than the launcher");
    std::set<pid_t> pids = {keeper_.pid(), starter_.pid()};
    for (const auto &[dir, grain] : grains_) pids.insert(grain.pid);
    return pids;
}

// A grain that runs as root may have started processes under any account but that of another grain.
RunsAs Launcher::may_be_of(const Running &grain, pid_t pid) const {
    if (planted("launcher.believe_environment")) return RunsAs::yes;
    if (grain.account.change || ::geteuid() != 0)
        return runs_as(pid, grain.account.change ? grain.account.uid : ::geteuid());
    RunsAs answer = RunsAs::yes;
    for (const auto &[dir, other] : grains_) {
        if (!other.account.change) continue;
        const RunsAs others = runs_as(pid, other.account.uid);
        if (others == RunsAs::yes) return RunsAs::no;
        if (others == RunsAs::unclear) answer = others;
    }
    return answer;
}

std::vector<pid_t> Launcher::housed_in(const Leaf &leaf) const {
    return leaf.there ? cgroups_.members(leaf.name) : std::vector<pid_t>();
}

std::set<pid_t> Launcher::housed() const {
    std::set<pid_t> pids;
    for (const auto &[dir, grain] : grains_)
        for (const pid_t pid : housed_in(grain.leaf)) pids.insert(pid);
    return pids;
}

// Among several grains of one account without control groups the cookie decides. A process without any of their cookies
// is ended with the last of them.
Launcher::Whose Launcher::whose(pid_t stray, const std::string &dir, const Running &grain,
                                const std::set<pid_t> &housed) const {
    if (enclosed(grain) || housed.count(stray) != 0) return Whose::of_another;
    const RunsAs may = may_be_of(grain, stray);
    if (may != RunsAs::yes) return may == RunsAs::no ? Whose::of_another : Whose::unclear;
    std::vector<std::string> rivals;
    for (const auto &[other, running] : grains_)
        if (other != dir && !enclosed(running) && same_account(running.account, grain.account)) rivals.push_back(other);
    if (rivals.empty()) return Whose::its_own;
    const Result<std::string> mark = starter_.mark(stray);
    if (!mark) return mark.status().code == Code::not_found ? Whose::unclaimed : Whose::unclear;
    if (*mark == dir) return Whose::its_own;
    return std::find(rivals.begin(), rivals.end(), *mark) != rivals.end() ? Whose::of_another : Whose::unclaimed;
}

FoundProcesses Launcher::tree_of(const std::string &dir, const Running &grain) const {
    return members_in(ProcessTable(), dir, grain).found;
}

// All processes attributable to the grain. A process without a visible environment may be in the middle of an exec.
Launcher::Members Launcher::members_in(const ProcessTable &table, const std::string &dir, const Running &grain) const {
    const std::set<pid_t> known = not_strays();
    const std::set<pid_t> in_groups = enclosed(grain) ? std::set<pid_t>() : housed();
    Members members;
    std::vector<pid_t> start, unclaimed;
    start = housed_in(grain.leaf);
    if (!grain.first_process_ended) start.push_back(grain.pid);
    for (const ProcessStat &p : table.all()) {
        if (p.parent != ::getpid() || known.count(p.pid) != 0 || p.session == grain.pid) continue;
        const Whose answer = whose(p.pid, dir, grain, in_groups);
        if (answer == Whose::its_own) start.push_back(p.pid);
        if (answer == Whose::unclear || answer == Whose::unclaimed) unclaimed.push_back(p.pid);
        members.found.unclear = members.found.unclear || (answer == Whose::unclear && !grain.in_group);
    }
    members.found.processes = table.family(start, grain.pid);
    members.unclaimed = table.family(unclaimed, 0);
    return members;
}

// An orphan is immediately a child of the launcher, and stays in its list as a zombie until it is waited for.
// So a list without any process proves that there is none; a list of zombies only does not, because the last of
// them may have started another during the scan.
bool Launcher::has_strays() const {
    const std::set<pid_t> known = not_strays();
    for (const pid_t pid : own_children())
        if (known.count(pid) == 0) return true;
    return false;
}

std::vector<pid_t> Launcher::strays_of(const std::string &dir, const Running &grain) const {
    const std::set<pid_t> known = not_strays(), in_groups = housed();
    std::vector<pid_t> pids;
    for (const pid_t pid : own_children())
        if (known.count(pid) == 0 && whose(pid, dir, grain, in_groups) == Whose::its_own) pids.push_back(pid);
    return pids;
}

// Kills processes that live shorter than a scan of the whole host takes. The pid of a child is not reused before it is
// waited for, so no check is needed before the signal.
void Launcher::chase(const std::string &dir, const Running &grain) {
    const Instant end = boot_clock() + chase_time;
    for (std::vector<pid_t> pids = strays_of(dir, grain); !pids.empty() && boot_clock() < end;
         pids = strays_of(dir, grain)) {
        for (const pid_t pid : pids) {
            DCS_REQUIRE(pid > 1 && grains_.count(dir) != 0, "only orphans of grains are chased");
            starter_.signal(pid, SIGKILL);
        }
        reap_strays();
    }
}

// Processes of the grain's account that no grain can be identified for use that account's resources. They do not
// justify ending a grain to which they may not belong.
void Launcher::end_unclaimed(const std::string &dir, const Running &grain, const std::string &words) {
    files::say(dir + ": together with unattributed processes of its account it " + words + "; these are ended");
    (void)end([&] { return FoundProcesses{members_in(ProcessTable(), dir, grain).unclaimed, false}; });
}

}  // namespace dcs::launcher
