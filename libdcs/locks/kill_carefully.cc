#include "locks/kill_carefully.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/planted.h"
#include "base/require.h"
#include "locks/leaf.h"
#include "locks/run_tree.h"

namespace dcs::locks {
namespace {

constexpr std::size_t host_kept = 48;  // of a record
constexpr std::int64_t patience = 1'000'000'000;

std::int64_t after(std::int64_t grace) { return (boot_clock() + Duration{grace}).ns; }

std::string named(const ProcessStat &p) {
    std::string command = kernel_text("/proc/" + std::to_string(p.pid) + "/comm", 64);
    while (!command.empty() && command.back() == '\n') command.pop_back();
    ProcessStat now;
    const char state = read_stat(p.pid, now) ? now.state : '?';
    for (char &c : command) c = c >= 0x20 && c < 0x7f ? c : '?';
    return "process " + std::to_string(p.pid) + " (" + command + ", state " + state + ")";
}

// Sends one kind of signal and waits until all have ended or the grace is over. True: all have ended. If there are
// descriptors for some of the processes only, the others follow when these have ended.
bool send(RunTree &tree, int number, std::int64_t grace) {
    const std::int64_t until = after(grace);
    std::set<std::pair<pid_t, std::uint64_t>> told;
    for (;;) {
        const FoundProcesses found = tree.look();
        if (is_over(found)) return true;
        for (const ProcessStat &p : found.processes) {
            if (!told.insert({p.pid, p.start_time}).second) continue;
            tree.signal(p, number);
            if (!planted("locks.no_cont")) tree.signal(p, SIGCONT);
        }
        thaw_leaf(tree.marks().leaf);
        if (tree.left(false).empty() && !tree.left(true).empty()) return false;
        if (!tree.wait_for(found, until)) return is_over(tree.look());
    }
}

bool kill_all(RunTree &tree, std::int64_t grace) {
    const std::int64_t until = after(grace);
    for (;;) {
        kill_leaf(tree.marks().leaf);
        const FoundProcesses found =
            strike([&] { return tree.look(); }, [&](const ProcessStat &p, int number) { tree.signal(p, number); });
        if (is_over(found)) return true;
        if (tree.left(false).empty() && !found.unclear) return is_over(tree.look());
        if (!tree.wait_for(found, until)) return is_over(tree.look());
    }
}

// Why the pids of the record mean nothing here; empty if they are valid.
std::string elsewhere(const World &world, const Owner &owner) {
    if (owner.host != world.host.substr(0, host_kept)) return "it runs on host " + owner.host;
    if (owner.boot != world.boot) return "it ran before this host was rebooted";
    if (owner.pid_namespace != world.pid_namespace) return "it runs in another pid namespace";
    return {};
}

// Whether the caller is a part of the tree to be ended.
bool inside(const RunTree &tree, const Owner &owner, const std::vector<pid_t> &line) {
    const auto is = [&](const ProcessIdentity &process) {
        if (std::find(line.begin(), line.end(), process.pid) == line.end()) return false;
        return process.pid == 1 || ProcessHandle::open(process).status().code != Code::not_found;
    };
    const std::vector<pid_t> in_leaf = leaf_members(tree.marks().leaf);
    return is(owner.process) || is(owner.supervisor) || tree.holds_any(line) ||
           (owner.cookie != 0 && carries_cookie(environment_of(::getpid()), owner.cookie)) ||
           std::find(in_leaf.begin(), in_leaf.end(), ::getpid()) != in_leaf.end();
}

Status ask(const ProcessHandle &supervisor) {
    DCS_REQUIRE(supervisor.fd() >= 0, "the supervisor's handle is open");
    siginfo_t info;
    std::memset(&info, 0, sizeof info);
    info.si_signo = SIGTERM;
    info.si_code = SI_QUEUE;
    info.si_pid = ::getpid();
    info.si_uid = ::getuid();
    info.si_value.sival_int = expire_request;
    if (::syscall(SYS_pidfd_send_signal, supervisor.fd(), SIGTERM, &info, 0) != 0) return supervisor.signal(0);
    return supervisor.signal(SIGCONT);
}

KillReport not_permitted(pid_t pid) {
    return {Killed::not_permitted, 0, "process " + std::to_string(pid) + " belongs to another user"};
}

}  // namespace

KillReport end_tree(RunTree &tree, const KillGrace &grace) {
    KillReport report;
    const bool gone = send(tree, SIGINT, grace.after_int) || send(tree, SIGTERM, grace.after_term) ||
                      kill_all(tree, grace.after_kill);
    report.signalled = tree.signalled();
    if (gone || planted("locks.unkillable_is_gone")) return report;
    const std::vector<ProcessStat> stuck = tree.left(false), forbidden = tree.left(true);
    report.result = stuck.empty() ? Killed::not_permitted : Killed::unkillable;
    const std::vector<ProcessStat> &left = stuck.empty() ? forbidden : stuck;
    if (left.empty() && !tree.trouble()) return {Killed::unkillable, report.signalled, tree.trouble().text};
    if (left.empty()) return {Killed::gone, report.signalled, ""};
    report.text = named(left.front()) + (stuck.empty() ? " belongs to another user" : " does not end");
    if (left.size() > 1) report.text += ", and " + std::to_string(left.size() - 1) + " more";
    return report;
}

KillReport kill_carefully(const World &world, const Owner &owner, const KillGrace &grace, std::optional<uid_t> only) {
    if (const std::string where = elsewhere(world, owner); !where.empty() && !planted("locks.kill_elsewhere"))
        return {Killed::elsewhere, 0, where};
    if (owner.process.pid <= 0 && owner.supervisor.pid <= 0 && owner.cookie == 0) return {};
    // Before the tree takes descriptors, of which few may be left.
    const std::vector<pid_t> line = self_and_ancestors();
    const Result<ProcessHandle> leader = ProcessHandle::open(owner.process),
                                supervisor = ProcessHandle::open(owner.supervisor);
    for (const auto *handle : {&leader, &supervisor})
        if (!*handle && handle->status().code != Code::not_found) return {Killed::unkillable, 0, handle->status().text};
    RunTree tree({.leader = owner.process,
                  .parent = owner.supervisor,
                  .group = owner.group,
                  .session = owner.session,
                  .cookie = owner.cookie,
                  .not_before = owner.process.start_ticks,
                  .leaf = owner.cgroup,
                  .only = only});
    tree.look();
    if (!planted("locks.kill_ancestors") && inside(tree, owner, line))
        return {Killed::own_ancestor, 0, "it is the requester itself or one of its ancestors"};
    if (leader && leader->signal(0).code == Code::refused) return not_permitted(owner.process.pid);
    failpoint("locks.kill.held");

    int asked = 0;
    if (supervisor) {
        if (ask(*supervisor).code == Code::refused) return not_permitted(owner.supervisor.pid);
        asked = 1;
        supervisor->ended(after(grace.after_int + grace.after_term + grace.after_kill + patience));
    }
    KillReport report = end_tree(tree, grace);
    report.signalled += asked;
    if (report.result != Killed::gone) return report;
    if (supervisor && !supervisor->ended(after(patience))) {  // it holds the lock, and has nothing left to supervise
        (void)supervisor->signal(SIGKILL);
        if (!supervisor->ended(after(grace.after_kill)))
            return {Killed::unkillable, report.signalled,
                    "supervisor " + std::to_string(owner.supervisor.pid) + " does not end"};
    }
    remove_leaf(tree.marks().leaf);
    return report;
}

}  // namespace dcs::locks
