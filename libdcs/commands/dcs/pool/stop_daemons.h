#pragma once
// Ends daemons of a private pool, and grains: politely first, then for certain.
#include <cstdint>
#include <string>
#include <vector>

#include "commands/dcs/frame/pool_directory.h"
#include "base/fd.h"
#include "locks/dcs_atoms.h"

namespace dcs::commands {

// Looking at processes and ending them without ever hitting a wrong one: a signal goes through a
// pidfd, and only after it was checked, with the pidfd open, that the process still is the one
// meant.

// A process that is pinned: its number cannot come to mean another one.
class Process {
public:
    explicit Process(int pid);  // good() is false when there is none
    bool good() const { return fd_.get() >= 0; }
    int pid() const { return pid_; }
    bool gone(int wait_ms) const;   // has it ended, at the latest after that time?
    void signal(int number) const;  // no error if it has ended

private:
    int pid_ = 0;
    Fd fd_;
};

struct ProcessFacts {
    bool exists = false;
    bool dying = false;  // dead, a zombie, or about to be: kill -9 is on its way
    int session = 0, group = 0;
    std::uint64_t start = 0;  // clock ticks since boot
};
ProcessFacts facts_of(int pid);

// Processes that have this file open: those that can hold the lock on it.
std::vector<int> holders_of(const std::string &path);
bool has_open(int pid, const std::string &path);

// Grains of the servers below `servers` ("DIR/servers") that are alive: sessions whose leader a pid
// file names ("pid start-time boot-id"), and whatever carries a grain directory of theirs in its
// environment. The caller itself is never listed.
struct LiveProcess {
    int pid = 0;
    std::uint64_t start = 0;
};
std::vector<LiveProcess> live_grain_processes(const std::string &servers, const std::vector<std::string> &names);
// How many grains of these servers run, by the pid files.
int running_grains(const std::string &servers, const std::vector<std::string> &names);

// SIGTERM to all, SIGKILL to those that still live after `patience_s`. A daemon is who holds its
// lock. Returns the names of those that could not be ended.
std::vector<std::string> stop_daemons(const std::vector<Daemon> &daemons, int patience_s);

// Is the daemon up, and stays so? Waits for one that is just dying (kill -9 a moment ago).
bool stays_up(const Daemon &daemon);

// KILL to every live grain process of these servers, until none is left. Number of processes
// killed; -1 if some would not go.
int end_grains(const Pool &pool, const std::vector<std::string> &servers);

// Root takes the rights of the account that decides what lies there (base/trusted_path.h), for good: pid files and
// links may name anything. Refused if the pool is another account's then. not_found, for root: there is no directory.
Status become_owner(const Pool &pool);

// `dcs up` and `dcs down` work on one pool one after the other.

// Waits until the lock DIR/up.lock is free, at most two minutes.
Result<locks::AdaptiveLock> take_work_lock(const Pool &pool);

}  // namespace dcs::commands
