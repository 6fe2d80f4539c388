#include "locks/belief.h"

#include <cerrno>
#include <cstring>

#include <sys/stat.h>
#include <unistd.h>

#include "base/planted.h"
#include "locks/files/lock_search.h"
#include "process/table.h"

namespace dcs::locks {
namespace {

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

Result<Belief> believe(const LockFile &file, std::int64_t byte, const Owner &owner, uid_t caller) {
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
                         const KillGrace &grace) {
    const Result<Belief> belief = believe(file, byte, owner, ::geteuid());
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
