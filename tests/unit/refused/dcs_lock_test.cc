// What dcs_lock says when the kernel refuses it something, or who is to be ended does not end.
#include <cerrno>
#include <cstdio>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/dcs_lock/call.h"
#include "locks/files/queue.h"
#include "locks/files/world.h"
#include "support/about.h"
#include "support/catch.h"
#include "support/refuse.h"
#include "unit/locks/lock_bench.h"

using namespace dcs;
using namespace dcs::locks;
using scratch::Directory;

namespace {

struct Plan {
    const char *call = nullptr;
    int error = 0;
    std::string of;
    int skip = 0;  // so many go through
};
const Plan no_signals{"syscall", EPERM, std::to_string(SYS_pidfd_send_signal)},
    lost_signals{"syscall", 0, std::to_string(SYS_pidfd_send_signal)};

// This host, under another name.
class Elsewhere final : public World {
public:
    Elsewhere() {
        boot = this_world().boot;
        pid_namespace = this_world().pid_namespace;
        host = "elsewhere";
    }
    Moment now() const override { return this_world().now(); }
};

// What a dcs_lock in a process of its own writes.
std::string dcs_lock(const std::vector<std::string> &words, const Plan &plan = {}, const World &world = this_world()) {
    int said[2];
    REQUIRE(::pipe(said) == 0);
    std::fflush(stdout);  // or the child writes what we have not written yet
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::dup2(said[1], STDOUT_FILENO);
        ::dup2(said[1], STDERR_FILENO);
        ::close(said[0]);
        ::close(said[1]);
        if (plan.call) dcs_refuse(dcs::test::order(plan.call, plan.error, plan.of, plan.skip).c_str());
        const int code = lock_command::run_lock_command(world, words);
        std::fflush(stdout);
        ::_exit(code);
    }
    ::close(said[1]);
    std::string text;
    char part[4096];
    for (ssize_t n; (n = ::read(said[0], part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(n));
    ::close(said[0]);
    ::waitpid(pid, nullptr, 0);
    return text;
}

// A dcs_lock that goes on. What it runs reads from us, and ends when we are gone.
class Running {
public:
    explicit Running(const std::vector<std::string> &words) {
        REQUIRE(::pipe2(input_, O_CLOEXEC) == 0);
        std::fflush(stdout);
        pid_ = ::fork();
        if (pid_ != 0) return;
        ::dup2(input_[0], STDIN_FILENO);
        ::close(input_[1]);
        ::_exit(lock_command::run_lock_command(this_world(), words));
    }
    Running(const Running &) = delete;
    ~Running() {
        scratch::end(pid_);
        ::close(input_[0]);
        ::close(input_[1]);
    }
    std::string pid() const { return "pid " + std::to_string(pid_); }

private:
    int input_[2] = {-1, -1};
    pid_t pid_ = -1;
};

bool has(const std::string &text, const std::string &part) {
    INFO(text);
    CHECK(text == about(part));
    return text == about(part);
}

// Locks of a directory of the test's own.
struct Locks {
    Directory dir;
    Locks() { ::setenv("DCS_LOCK_DIR", dir.path().c_str(), 1); }
    ~Locks() { ::unsetenv("DCS_LOCK_DIR"); }
    void until(const std::string &lock, const std::string &part) const {
        REQUIRE(lock_bench::soon([&] { return dcs_lock({"list", lock}).find(part) != std::string::npos; }));
    }
};

}  // namespace

TEST_CASE("a lock of a script whose keeper cannot be had") {
    const Locks locks;
    has(dcs_lock({"get", "edit", "motd"}, {"pipe2", EMFILE, ""}), "cannot create pipe keeper many open files");
    has(dcs_lock({"get", "edit", "motd"}, {"fork", EAGAIN, ""}),
        "cannot start keeper lock Resource temporarily unavailable");
    has(dcs_lock({"get", "edit", "motd"}, {"getppid", 0, ""}), "calling script ended call dcs_lock script runs");
}

TEST_CASE("a lock of a script whose keeper does not let go") {
    const Locks locks;  // the script is this process
    const auto got = [] { return dcs_lock({"get", "edit", "motd"}); };
    REQUIRE(got() == "");
    has(dcs_lock({"put", "edit", "motd"}, {"syscall", EMFILE, std::to_string(SYS_pidfd_open), 1}),
        "cannot open process ");
    CHECK(dcs_lock({"list"}).find("held") != std::string::npos);
    const std::string text = dcs_lock({"put", "edit", "motd"}, {"ppoll", ENOMEM, ""});
    has(text, "the keeper, pid ");
    has(text, "not end stopped kill -CONT");
    REQUIRE(lock_bench::soon([&] { return got() == ""; }));  // it was ordered to, all the same
    CHECK(dcs_lock({"put", "edit", "motd"}) == "");
}

TEST_CASE("locks that cannot be listed") {
    const Locks locks;
    has(dcs_lock({"list"}, {"opendir", EACCES, ""}),
        "the lock directory " + locks.dir.path() + " cannot be read: Permission denied");
}

TEST_CASE("holders that are not to be ended") {
    const Locks locks;
    const Running holder({"h", "cat"});
    locks.until("h", "held");
    has(dcs_lock({"break", "h"}, {}, Elsewhere()), "runs host pid namespace runs host");
    has(dcs_lock({"break", "h"}, no_signals), " is not ended: process ");
    has(dcs_lock({"break", "h"}, {"syscall", EMFILE, std::to_string(SYS_pidfd_open)}), "not end cannot open process");
    has(dcs_lock({"--grace=0,0,0", "break", "h"}, lost_signals), " does not end: ");
}

TEST_CASE("waiters that are not to be sent home") {
    const Locks locks;
    const Running holder({"h", "cat"});
    locks.until("h", "held");
    CHECK(dcs_lock({"break", "--head", "h"}) == "dcs_lock: h: there is no waiter\n");
    {
        const Running waiter({"-q", "h", "true"});
        locks.until("h", " 1 ");
        has(dcs_lock({"break", "--head", "h"}, no_signals), waiter.pid() + " belongs user ask user root");
        has(dcs_lock({"--grace=0,0,0", "break", "--head", "h"}, lost_signals),
            waiter.pid() + " received TERM not ended");
        const std::string open = std::to_string(SYS_pidfd_open);
        has(dcs_lock({"break", "--head", "h"}, {"syscall", ESRCH, open, 1}), waiter.pid() + " has ended already");
        has(dcs_lock({"break", "--head", "h"}, {"syscall", EMFILE, open, 1}),
            "cannot open process " + waiter.pid().substr(4) + ": Too many open files");
    }
    Result<Place> place = place_of(std::string("h"), ".lock");
    REQUIRE(place);
    Result<LockFile> file = LockFile::open(*place, FileKind::atom);
    REQUIRE(file);
    REQUIRE(*file->lock(ticket_byte + 7, 1, false, Deadline::none()));
    has(dcs_lock({"break", "--head", "h"}), "first waiter not known left no note ps show");
}

TEST_CASE("a holder that left no record") {
    const Locks locks;
    CHECK(dcs_lock({"h", "true"}) == "");
    Result<Place> place = place_of(std::string("h"), ".lock");
    Result<LockFile> file = LockFile::open(*place, FileKind::atom);
    REQUIRE(*file->hold(false, Deadline::none()));
    has(dcs_lock({"break", "h"}), std::to_string(::getpid()) + " is an ancestor of dcs_lock");
    has(dcs_lock({"break", "h"}, {"opendir", EACCES, ""}),
        "h holder left no record not see it; `fuser " + place->path + "`, as root, may show it");
}
