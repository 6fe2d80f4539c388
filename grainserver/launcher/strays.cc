// Whose a process is that lost its parents. Those of all grains are children of the launcher then, so it is told by
// what the kernel says of them: the control group that it cannot leave, and the account that it cannot change. What
// its environment says tells only the grains of one account from each other, who could signal each other anyway.
#include <csignal>
#include <cstdio>

#include <unistd.h>

#include "base/clock.h"
#include "base/planted.h"
#include "base/require.h"
#include "grainserver/launcher/launcher.h"

namespace dcs::launcher {
namespace {
constexpr Duration chase_time = milliseconds(100);  // then others are served; the next chase comes soon

bool same_account(const files::Account &a, const files::Account &b) {
    return planted("launcher.believe_environment") || (a.change == b.change && (!a.change || a.uid == b.uid));
}
}  // namespace

std::set<pid_t> Launcher::not_strays() const {
    DCS_REQUIRE(keeper_.pid() != ::getpid(), "the keeper is another process than the launcher");
    std::set<pid_t> pids = {keeper_.pid()};
    for (const auto &[dir, grain] : grains_) pids.insert(grain.pid);
    return pids;
}

// A grain that is root may have begun processes under any account but that of another grain.
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

std::set<pid_t> Launcher::housed() const {
    std::set<pid_t> pids;
    for (const auto &[dir, grain] : grains_)
        if (grain.in_group)
            for (const pid_t pid : cgroups_.members(dir)) pids.insert(pid);
    return pids;
}

// Of several grains of one account that have no control group, who carries whose cookie. Who carries none of theirs
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
    const std::string environment = environment_of(stray);
    if (environment.empty()) return Whose::unclear;
    if (has_variable(environment, cookie(path_ + "/" + dir))) return Whose::its_own;
    for (const std::string &other : rivals)
        if (has_variable(environment, cookie(path_ + "/" + other))) return Whose::of_another;
    return Whose::unclaimed;
}

FoundProcesses Launcher::tree_of(const std::string &dir, const Running &grain) const {
    return members_in(ProcessTable(), dir, grain).found;
}

// Every process of it that can be told. One that shows no environment may be in the middle of an exec.
Launcher::Members Launcher::members_in(const ProcessTable &table, const std::string &dir, const Running &grain) const {
    const std::set<pid_t> known = not_strays();
    const std::set<pid_t> in_groups = enclosed(grain) ? std::set<pid_t>() : housed();
    Members members;
    std::vector<pid_t> start, unclaimed;
    if (grain.in_group) start = cgroups_.members(dir);
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

// What lost its parents is our child from that moment on, and stays in our list as a zombie until we wait for it.
// So a list that shows nobody proves that nobody is there; one that shows only zombies does not, as the last of
// them may have begun another while we read.
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

// Runs after processes that live shorter than a look at the whole host takes. Nobody else can get the number of
// a child before we wait for it, so nothing has to be looked up before the signal.
void Launcher::chase(const std::string &dir, const Running &grain) {
    const Instant end = boot_clock() + chase_time;
    for (std::vector<pid_t> pids = strays_of(dir, grain); !pids.empty() && boot_clock() < end;
         pids = strays_of(dir, grain)) {
        for (const pid_t pid : pids) {
            DCS_REQUIRE(pid > 1 && grains_.count(dir) != 0, "only children that grains left behind are chased");
            ::kill(pid, SIGKILL);
        }
        reap_strays();
    }
}

// Processes of the grain's account that hide from their own grain use what is its account's to use. They are no
// reason to end a grain that may not be theirs.
void Launcher::end_unclaimed(const std::string &dir, const Running &grain, const std::string &words) {
    std::printf("%s: together with processes of its account that no grain claims %s; these are ended\n", dir.c_str(),
                words.c_str());
    std::fflush(stdout);
    (void)strike([&] { return FoundProcesses{members_in(ProcessTable(), dir, grain).unclaimed, false}; });
}

}  // namespace dcs::launcher
