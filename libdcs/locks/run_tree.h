#pragma once
// The processes of one run.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "process/identity.h"
#include "process/table.h"

namespace dcs::locks {

// A control group for the tree of one run, where the host permits creating one without privileges or configuration: a
// leaf of version 2 below the caller's own group. It finds every process of the run, and kills all of them at once.
// leaf_name() is the last component of its path, "dcs-lock-<16 hex digits>": a record with any other is not accepted.
std::string leaf_name(std::uint64_t cookie);

// The path of a new leaf; empty if none can be created. Also removes the leaves of dead supervisors.
std::string make_leaf(std::uint64_t cookie);
// Whether `path` is an existing leaf of this cookie.
bool is_leaf(const std::string &path, std::uint64_t cookie);

std::vector<pid_t> leaf_members(const std::string &path);
void thaw_leaf(const std::string &path);
// Kills all members at once, if the kernel supports it (5.14 and later).
void kill_leaf(const std::string &path);
// Moves the remaining members to the parent group first.
void remove_leaf(const std::string &path);

// The marks by which a process belongs to the run.
struct TreeMarks {
    ProcessIdentity leader;        // it and all its descendants
    ProcessIdentity parent;        // all descendants but not the process itself: a supervisor
    pid_t group = 0, session = 0;  // 0: none. Valid only while a held member has that number
    std::uint64_t cookie = 0;      // 0: none
    std::uint64_t not_before = 0;  // start tick: an older process has the cookie of another run
    std::string leaf;              // control group; empty: none
    std::optional<uid_t> only;     // processes of other accounts must not be signalled
    std::set<pid_t> strangers;     // children of `parent` that are older than the run
};

inline bool is_over(const FoundProcesses &found) { return found.processes.empty() && !found.unclear; }

// The processes of one run, found by every mark that distinguishes them from others. Each is held by a pidfd, so that
// a signal reaches the process that was found, however late it is sent.
class RunTree {
public:
    explicit RunTree(TreeMarks marks);

    // Scans all processes of the host and takes handles of new members. Returns those that are left. Unclear: the
    // descriptors did not suffice; repeat when some held members have ended.
    FoundProcesses look();
    // The reason why the last look was unclear.
    const Status &trouble() const { return trouble_; }
    // Signals held members; notes those that must not be signalled.
    void signal(const ProcessStat &member, int number);
    // Waits until all held members have ended or CLOCK_BOOTTIME is `until_ns`; `forbidden_too`: waits also for those
    // that must not be signalled.
    bool wait(std::int64_t until_ns, bool forbidden_too = false) const;
    // The same after a look, with a pause if members were out of reach, as descriptors may be free then. False: the
    // time is over.
    bool wait_for(const FoundProcesses &found, std::int64_t until_ns, bool forbidden_too = false) const;
    // Waits without a limit until no member runs.
    void wait_for_all();
    // Whether one of `pids` is a member. Used with the caller's pid and its ancestors.
    bool holds_any(const std::vector<pid_t> &pids) const;

    const TreeMarks &marks() const { return marks_; }
    int signalled() const { return static_cast<int>(signalled_.size()); }
    // Members that still run: those that must not be signalled, or the others.
    std::vector<ProcessStat> left(bool forbidden) const;

private:
    using Key = std::pair<pid_t, std::uint64_t>;  // pid, start tick
    struct Member {
        ProcessStat stat;
        ProcessHandle handle;
    };
    bool running(const Member &member) const { return !member.handle.ended(0); }
    bool number_is_ours(const ProcessTable &table, pid_t number, pid_t ProcessStat::*of) const;
    void hold_leader();
    FoundProcesses still_running() const;
    bool marked(const ProcessStat &process) const;
    bool hold(const ProcessStat &seen, bool by_mark, std::uint64_t scan_tick);

    TreeMarks marks_;
    std::string cookie_;
    std::map<Key, Member> members_;
    std::set<Key> signalled_, forbidden_, out_of_reach_;
    Status trouble_;
};

// "DCS_LOCK_ID=<16 hex digits>"
std::string cookie_variable(std::uint64_t cookie);
// The variables of a run that is started inside the runs that `environment` names: DCS_LOCK_ID for the run itself,
// DCS_LOCK_OUTER for all runs around it, so that each of them finds its members.
std::vector<std::string> cookie_variables(std::uint64_t cookie);
// Whether a process with this environment belongs to that run.
bool carries_cookie(const std::string &environment, std::uint64_t cookie);

}  // namespace dcs::locks
