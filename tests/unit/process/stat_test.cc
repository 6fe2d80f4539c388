// What the kernel says of processes.
#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

#include "process/identity.h"
#include "process/table.h"

using namespace dcs;

namespace {
struct Child {
    pid_t pid = ::fork();
    Child() {
        if (pid == 0) {
            ::pause();
            ::_exit(0);
        }
    }
    ~Child() {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
};
}  // namespace

TEST_CASE("a child is found in every list, and by its number only") {
    const Child child;
    REQUIRE(child.pid > 0);
    const std::vector<pid_t> children = own_children();
    CHECK(std::count(children.begin(), children.end(), child.pid) == 1);
    const std::vector<int> numbers = numbers_in("/proc");
    CHECK(std::count(numbers.begin(), numbers.end(), child.pid) == 1);
    int missed = -1;
    const std::vector<ProcessStat> all = all_processes(&missed);
    CHECK(missed == 0);
    CHECK(std::any_of(all.begin(), all.end(), [&](const ProcessStat &p) {
        return p.pid == child.pid && p.parent == ::getpid() && !p.of_kernel;
    }));
    CHECK(identify(child.pid)->pid == child.pid);
    CHECK(self_and_ancestors().front() == ::getpid());
}

TEST_CASE("a process that executes one program after the other shows its environment") {
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        char script[] = "S=exec /bin/sh -c \"$S\"", mark[] = "MARK=1";
        char *environment[] = {script, mark, nullptr};
        ::execle("/bin/sh", "sh", "-c", script + 2, nullptr, environment);
        ::_exit(127);
    }
    while (!has_variable(environment_of(pid), "MARK=1")) ::sched_yield();
    int without = 0;
    for (int i = 0; i < 20'000; ++i)
        if (!has_variable(environment_of(pid), "MARK=1")) ++without;
    // Read once it would be a thousand; a process that gets no processor amid execve(2) has none for longer.
    CHECK(without < 100);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
}

TEST_CASE("a signal goes to the process that was meant, not to a later one of its number") {
    const Child child;
    ProcessStat stat;
    REQUIRE(read_stat(child.pid, stat));
    ProcessStat other = stat;
    other.start_time += 1;
    signal_exactly(other, SIGKILL);
    CHECK(::waitpid(child.pid, nullptr, WNOHANG) == 0);
    const Result<ProcessHandle> handle = ProcessHandle::open(*identify(child.pid));
    REQUIRE(handle);
    CHECK_FALSE(handle->ended(0));
    ProcessIdentity wrong = *identify(child.pid);
    wrong.start_ticks += 1;
    wrong.pidfs_inode = 0;
    CHECK(ProcessHandle::open(wrong).status().code == Code::not_found);
    signal_exactly(stat, SIGKILL);
    CHECK(handle->ended(INT64_MAX));
}

TEST_CASE("lists of numbers: white space parts them, anything else is passed over") {
    std::string name = "/tmp/dcs-process-XXXXXX";
    const int fd = ::mkstemp(name.data());
    REQUIRE(fd >= 0);
    ::close(fd);
    std::ofstream(name) << "12 7\n\n x 0 -3 42 ";
    CHECK(pids_in(name) == std::vector<pid_t>{12, 7, 42});
    CHECK(kernel_text(name, 4) == "12 7");
    ::unlink(name.c_str());
    CHECK(pids_in(name).empty());
    CHECK(kernel_text(name, 4).empty());
    CHECK(numbers_in(name).empty());
}
