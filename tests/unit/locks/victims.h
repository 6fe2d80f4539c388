#pragma once
// Processes that are to be ended, and innocents that count every signal they get.
#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <linux/sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "process/identity.h"
#include "process/table.h"
#include "locks/files/record.h"
#include "locks/run_tree.h"
#include "locks/files/world.h"
#include "support/catch.h"

namespace victims {

using namespace dcs;
using namespace dcs::locks;

inline volatile int *counts = nullptr;
inline void count(int number) { counts[number] = counts[number] + 1; }

// Has handlers for everything that has any, counts what comes, and ends on what it is ordered to.
class Counter {
public:
    // `ends_on` 0: on nothing but SIGKILL. `pid`: that pid, if the kernel lets us choose.
    explicit Counter(int ends_on = 0, pid_t pid = 0, bool own_group = false) {
        shared_ = static_cast<int *>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        struct clone_args args = {};
        args.exit_signal = SIGCHLD;
        if (pid != 0) {
            args.set_tid = reinterpret_cast<std::uint64_t>(&pid);
            args.set_tid_size = 1;
        }
        pid_ = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
        if (pid_ == 0) run(ends_on, own_group);
        while (pid_ > 0 && shared_[0] == 0) ::usleep(200);
    }
    Counter(const Counter &) = delete;
    ~Counter() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::kill(pid_, SIGCONT);
            ::waitpid(pid_, nullptr, 0);
        }
        ::munmap(const_cast<int *>(shared_), 4096);
    }
    pid_t pid() const { return pid_; }
    bool made() const { return pid_ > 0; }
    int got(int number) const { return shared_[number]; }
    int signals() const {
        int sum = 0;
        for (int number = 1; number < 65; ++number) sum += shared_[number];
        return sum;
    }
    bool lives() const {
        ProcessStat stat;
        return read_stat(pid_, stat) && stat.state != 'Z' && stat.state != 'T';
    }
    void reap() {
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

private:
    [[noreturn]] void run(int ends_on, bool own_group) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        counts = shared_;
        for (int number = 1; number < 65; ++number)
            if (number != SIGKILL && number != SIGSTOP) ::signal(number, count);
        if (own_group) ::setsid();
        shared_[0] = 1;
        while (ends_on == 0 || shared_[ends_on] == 0) ::usleep(500);
        ::_exit(0);
    }
    volatile int *shared_ = nullptr;  // [0]: ready
    pid_t pid_ = -1;
};

// Waits for what must become true; a test that hangs here has found a bug.
template <class What> void until(What what) {
    while (!what()) ::usleep(500);
}

inline std::vector<pid_t> pids_in(const std::string &file) {
    std::vector<pid_t> pids;
    std::ifstream in(file);
    for (pid_t pid = 0; in >> pid;) pids.push_back(pid);
    return pids;
}

// A leader with a plain child, one in a session of its own, a daemon that forked twice, one that ignores INT and
// TERM and one that is stopped. Each writes its pid to `file`.
inline std::string crowd_script(const std::string &file) {
    return "F=" + file + R"(
        echo $$ >> $F
        sleep 1000 & echo $! >> $F
        setsid sh -c 'echo $$ >> $0; exec sleep 1000' $F &
        (setsid sh -c 'sleep 1000 & echo $! >> $0' $F)
        sh -c 'trap "" INT TERM; echo $$ >> $0; while :; do sleep 1000; done' $F &
        sleep 1000 & p=$!; kill -STOP $p; echo $p >> $F
        while :; do sleep 1000; done)";
}
constexpr std::size_t crowd_size = 6;

// sh -c SCRIPT with the cookie, if there is one, in its environment.
inline pid_t shell(const std::string &script, std::uint64_t cookie, bool own_session = false) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    if (own_session) ::setsid();
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
    std::string variable = cookie_variable(cookie), path = "PATH=/usr/bin:/bin";
    char *environment[] = {path.data(), cookie != 0 ? variable.data() : nullptr, nullptr};
    ::execle("/bin/sh", "sh", "-c", script.c_str(), nullptr, environment);
    ::_exit(127);
}

inline std::vector<ProcessIdentity> crowd_in(const std::string &file) {
    until([&] { return pids_in(file).size() >= crowd_size; });
    std::vector<ProcessIdentity> all;
    for (const pid_t pid : pids_in(file))
        if (const auto process = identify(pid)) all.push_back(*process);
    return all;
}
inline int survivors(const std::vector<ProcessIdentity> &all) {
    return static_cast<int>(std::count_if(all.begin(), all.end(), [](const ProcessIdentity &process) {
        const auto handle = ProcessHandle::open(process);
        return handle && !handle->ended(0);
    }));
}
inline int carriers(std::uint64_t cookie) {
    int n = 0;
    for (const ProcessStat &p : all_processes())
        if (p.state != 'Z' && carries_cookie(environment_of(p.pid), cookie)) ++n;
    return n;
}

inline void kill_carriers(std::uint64_t cookie) {
    for (const ProcessStat &p : all_processes())
        if (p.pid != ::getpid() && carries_cookie(environment_of(p.pid), cookie)) ::kill(p.pid, SIGKILL);
}

// Whatever a failed test left of a run.
struct Broom {
    std::uint64_t cookie;
    ~Broom() {
        kill_carriers(cookie);
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {}
    }
};

inline Owner owner(const ProcessIdentity &process, std::uint64_t cookie = 0) {
    Owner owner;
    owner.process = process;
    owner.boot = this_world().boot;
    owner.pid_namespace = this_world().pid_namespace;
    owner.host = this_world().host;
    owner.cookie = cookie;
    return owner;
}
inline Owner owner(pid_t pid, std::uint64_t cookie = 0) {
    const auto process = identify(pid);
    REQUIRE(process);
    return owner(*process, cookie);
}

}  // namespace victims
