#include "locks/kill_carefully.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/planted.h"
#include "base/require.h"
#include "base/text.h"
#include "locks/files/lock_search.h"
#include "locks/run_tree.h"
#include "process/table.h"

namespace dcs::locks {
namespace {

constexpr std::size_t host_kept = 48;  // of a record
constexpr std::int64_t patience = second;

std::int64_t after(std::int64_t grace) { return (boot_clock() + Duration{grace}).ns; }

// By CLOCK_BOOTTIME; a second early, so that what began while it took the lock had begun before.
std::int64_t began(const ProcessIdentity &process) {
    const std::int64_t tick = second / ::sysconf(_SC_CLK_TCK);
    return static_cast<std::int64_t>(process.start_ticks) * tick - second;
}

std::string named(const ProcessStat &p) {
    std::string command = kernel_text("/proc/" + std::to_string(p.pid) + "/comm", 64);
    while (!command.empty() && command.back() == '\n') command.pop_back();
    ProcessStat now;
    const char state = read_stat(p.pid, now) ? now.state : '?';
    return "process " + std::to_string(p.pid) + " (" + printable(command) + ", state " + state + ")";
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

constexpr mode_t written_by_others = S_IWGRP | S_IWOTH;  // with an access list the group's bits are its mask

std::string uid_words(uid_t uid) { return "uid " + std::to_string(uid); }

Status refused(const LockFile &file, const std::string &why, const std::string &what_to_do) {
    return fail(Code::refused,
                "no process is ended on the evidence of " + file.path() + ": " + why + ". " + what_to_do);
}

// Which accounts can write the file: root and its owner only, or others too.
struct Writers {
    uid_t owner = 0;
    bool others = false;
};
Result<Writers> writers_of(const LockFile &file, uid_t caller) {
    struct stat st = {};
    if (::fstat(file.fd(), &st) != 0) return fail_errno(Code::io_error, "cannot examine " + file.path(), errno);
    if (st.st_nlink > 1)
        return refused(file, "it has " + std::to_string(st.st_nlink) + " hard links and may be another lock",
                       "Remove the other links, or end the holder with kill(1)");
    const Writers writers{st.st_uid, (st.st_mode & written_by_others) != 0};
    if (writers.others && caller == 0 && writers.owner != 0)
        return refused(file, "it belongs to " + uid_words(writers.owner) + " and others may write it",
                       "Use chmod go-w, use a lock file that belongs to root, or end the holder with kill(1)");
    return writers;
}

Status not_its_own(const LockFile &file, pid_t pid, uid_t only, const Writers &writers) {
    const std::string why = "process " + std::to_string(pid) + " does not run as " + uid_words(only) +
                            (writers.others ? ", and others may write the file" : ", to whom the file belongs");
    return refused(file, why, "Its owner or root can end it with kill(1)");
}

// A zombie has no descriptors, and needs not be ended.
bool lives(const ProcessIdentity &process) {
    const Result<ProcessHandle> handle = ProcessHandle::open(process);
    return handle && !handle->ended(0);
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

Result<Belief> believe(const LockFile &file, std::int64_t byte, const Owner &owner, uid_t caller,
                       std::int64_t since_boot) {
    Belief belief{owner, {}};
    if (planted("locks.believe_the_file")) return belief;
    const Result<Writers> writers = writers_of(file, caller);
    if (!writers) return writers.status();
    if (writers->others) belief.only = caller;
    else if (writers->owner != 0 && writers->owner != caller) belief.only = writers->owner;
    const bool process = lives(owner.process), supervisor = lives(owner.supervisor);
    for (const auto &[there, who] : {std::pair{process, owner.process}, std::pair{supervisor, owner.supervisor}})
        if (there && belief.only && runs_as(who.pid, *belief.only) != RunsAs::yes)
            return not_its_own(file, who.pid, *belief.only, *writers);
    const Has of_process = process ? has_lock(owner.process.pid, file, byte) : Has::no;
    const Has of_supervisor = supervisor ? has_lock(owner.supervisor.pid, file, byte) : Has::no;
    const bool proven = of_process == Has::yes || of_supervisor == Has::yes;
    const bool unseen = of_process == Has::unseen || of_supervisor == Has::unseen;
    const bool over = !lives(owner.process) && !lives(owner.supervisor);  // the marks find their descendants
    if (!proven && (writers->others || !(over || unseen)))
        return refused(file, "the process that it names does not hold this lock",
                       "`dcs_lock list` and `lsof` show the holder; end it with kill(1)");
    const bool lived_then = (of_process == Has::yes && began(owner.process) <= since_boot) ||
                            (of_supervisor == Has::yes && began(owner.supervisor) <= since_boot);
    if (writers->others && since_boot != 0 && !lived_then && !planted("locks.believe_the_age"))
        return refused(file, "it says that its holder has held the lock for longer than that process runs",
                       "an account that can write the file has changed it; end the holder with kill(1)");
    if (supervisor && of_supervisor == Has::no) belief.owner.supervisor = {};
    // If others can write the file: only processes that the kernel shows as holders, and their descendants.
    if (writers->others) {
        if (of_process != Has::yes) belief.owner.process = {};
        belief.owner.group = belief.owner.session = 0;
        belief.owner.cookie = 0;
    }
    // A control group is ended as a whole, with the caller's privileges, not the owner's.
    if (belief.only && *belief.only != caller) belief.owner.cgroup.clear();
    if (writers->others) belief.owner.cgroup.clear();
    return belief;
}

KillReport kill_believed(const World &world, const LockFile &file, std::int64_t byte, const Owner &owner,
                         const KillGrace &grace, std::int64_t held_for) {
    const std::int64_t since_boot = held_for < 0 ? 0 : world.now().boot - held_for;
    const Result<Belief> belief = believe(file, byte, owner, ::geteuid(), since_boot);
    if (!belief) return {Killed::not_permitted, 0, belief.status().text};
    return kill_carefully(world, belief->owner, grace, belief->only);
}

Status believe_waiter(const LockFile &file, std::int64_t byte, const ProcessIdentity &process, uid_t caller) {
    const Result<Writers> writers = writers_of(file, caller);
    if (!writers) return writers.status();
    const uid_t only = writers->others ? caller : writers->owner;
    const bool any_process = !writers->others && (only == 0 || only == caller);  // the kernel checks permissions
    if (!any_process && runs_as(process.pid, only) != RunsAs::yes)
        return not_its_own(file, process.pid, only, *writers);
    if (has_lock(process.pid, file, byte) == Has::no)
        return refused(file, "process " + std::to_string(process.pid) + " is not waiting for it",
                       "`dcs_lock list` and `lsof` show the waiters");
    return Status::ok();
}

}  // namespace dcs::locks
