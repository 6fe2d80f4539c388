#include "stop_daemons.h"

#include <csignal>
#include <set>

#include "commands/dcs/query/scheduler.h"
#include "base/clock.h"
#include "locks/dcs_atoms.h"
#include "locks/files/lock_search.h"
#include "processes.h"

namespace dcs::commands {
namespace {

constexpr int kill_wait_s = 20;  // for the kernel to tear down what was killed, on a busy host

// Pins the processes that hold the daemon's lock. The note says who took it; that it is still that
// process is certain when it has the file open and the lock is held after the process was pinned.
// A note of another process (killed before it was written, say): the process that has the file open.
std::vector<Process> pin_holders(const Daemon &daemon) {
    std::vector<Process> pinned;
    std::vector<int> candidates;
    if (daemon.pid > 0 && has_open(daemon.pid, daemon.lock)) candidates.push_back(daemon.pid);
    else candidates = holders_of(daemon.lock);
    for (int pid : candidates) {
        Process process(pid);
        if (process.good() && has_open(pid, daemon.lock) && locks::is_held(daemon.lock))
            pinned.push_back(std::move(process));
    }
    return pinned;
}

bool all_free(const std::vector<Daemon> &daemons) {
    for (const Daemon &daemon : daemons)
        if (locks::is_held(daemon.lock)) return false;
    return true;
}

void signal_holders(const std::vector<Daemon> &daemons, int number) {
    for (const Daemon &daemon : daemons) {
        if (!locks::is_held(daemon.lock)) continue;
        for (const Process &process : pin_holders(daemon)) process.signal(number);
    }
}

bool wait_all_free(const std::vector<Daemon> &daemons, int patience_s) {
    const Instant deadline = boot_clock() + seconds(patience_s);
    while (!all_free(daemons)) {
        if (boot_clock() > deadline) return false;
        pause_ms(10);
    }
    return true;
}

}  // namespace

std::vector<std::string> stop_daemons(const std::vector<Daemon> &daemons, int patience_s) {
    signal_holders(daemons, SIGTERM);
    const Instant deadline = boot_clock() + seconds(kill_wait_s);
    if (wait_all_free(daemons, patience_s)) return {};
    // Once more in each round: a holder may have handed its lock on to a child.
    while (!all_free(daemons) && boot_clock() < deadline + seconds(patience_s)) {
        signal_holders(daemons, SIGKILL);
        wait_all_free(daemons, 1);
    }
    std::vector<std::string> left;
    for (const Daemon &daemon : daemons)
        if (locks::is_held(daemon.lock)) left.push_back(daemon.role + " " + daemon.name);
    return left;
}

bool stays_up(const Daemon &daemon) {
    const Instant deadline = boot_clock() + seconds(kill_wait_s);
    // Seen alive twice: between taking its SIGKILL and being marked as exiting a process looks
    // sound.
    for (int seen = 0; seen < 2;) {
        if (!locks::is_held(daemon.lock)) return false;
        const int pid = locks::holder_of(daemon.lock);
        const bool sound = pid > 0 && !facts_of(pid).dying;
        seen = sound ? seen + 1 : 0;
        if (!sound && boot_clock() > deadline) return true;  // held by whom ever; starting another is in vain
        if (seen < 2) pause_ms(5);
    }
    return true;
}

int end_grains(const Pool &pool, const std::vector<std::string> &servers) {
    const Instant deadline = boot_clock() + seconds(kill_wait_s);
    std::set<int> killed;
    while (true) {
        const std::vector<LiveProcess> alive = live_grain_processes(pool.path("servers"), servers);
        if (alive.empty()) return static_cast<int>(killed.size());
        if (boot_clock() > deadline) return -1;
        for (const LiveProcess &grain : alive) {
            Process process(grain.pid);
            if (!process.good() || facts_of(grain.pid).start != grain.start) continue;
            process.signal(SIGKILL);
            killed.insert(grain.pid);
        }
        pause_ms(20);
    }
}

}  // namespace dcs::commands
