#pragma once
// The processes of one run, found by everything that tells them from innocents, each held by a pidfd: what is
// signalled through it is what was found, however late the signal comes.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "process/identity.h"
#include "process/table.h"

namespace dcs::locks {

// What tells that a process belongs to the run.
struct TreeMarks {
    ProcessIdentity leader;         // it and all its descendants
    ProcessIdentity parent;         // all descendants, itself not: a supervisor
    pid_t group = 0, session = 0;   // 0: none. Believed only while a member that is held proves whose number it is
    std::uint64_t cookie = 0;       // 0: none
    std::uint64_t not_before = 0;   // start tick: who is older carries the cookie of another run
    std::string leaf;               // control group; empty: none
    std::optional<uid_t> only;      // whoever does not run as this account may not be signalled
    std::set<pid_t> strangers;      // children of `parent` that were there before the run
};

inline bool is_over(const FoundProcesses &found) { return found.processes.empty() && !found.unclear; }

class RunTree {
public:
    explicit RunTree(TreeMarks marks);

    // Looks at all processes of the host and holds those members that were not held yet. What is left. Unclear: there
    // were not descriptors enough; look again when those that are held have ended.
    FoundProcesses look();
    // Why the last look was unclear.
    const Status &trouble() const { return trouble_; }
    // Signals to members that are held; notes who may not be signalled.
    void signal(const ProcessStat &member, int number);
    void signal_all(int number);
    // Until all that are held have ended, or CLOCK_BOOTTIME `until_ns`; those that may not be signalled if asked.
    bool wait(std::int64_t until_ns, bool forbidden_too = false) const;
    // The same after a look, with a pause if some were out of reach: there may be descriptors for them then. False: the
    // time is over.
    bool wait_for(const FoundProcesses &found, std::int64_t until_ns, bool forbidden_too = false) const;
    // However long it takes: until nothing of it runs.
    void wait_for_all();
    // A process that the caller is or descends from.
    bool holds_any(const std::vector<pid_t> &pids) const;

    const TreeMarks &marks() const { return marks_; }
    int signalled() const { return static_cast<int>(signalled_.size()); }
    // Members that still run: those that may not be signalled, and the others.
    std::vector<ProcessStat> left(bool forbidden) const;

private:
    using Key = std::pair<pid_t, std::uint64_t>;  // pid, start tick
    struct Member { ProcessStat stat; ProcessHandle handle; };
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
// The variables of a run that is started inside the runs that `environment` names: DCS_LOCK_ID for itself,
// DCS_LOCK_OUTER for all around it, so that each of them finds it.
std::vector<std::string> cookie_variables(std::uint64_t cookie);
// Does a process whose environment this is belong to that run?
bool carries_cookie(const std::string &environment, std::uint64_t cookie);

}  // namespace dcs::locks
