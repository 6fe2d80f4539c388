#include "locks/supervision.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/fd.h"
#include "base/planted.h"
#include "base/text.h"
#include "locks/spawn.h"
#include "locks/files/world.h"

namespace dcs::locks {
namespace {

// Closes all descriptors but the locks: the reader of a pipe that the command closes must see its end.
void keep_only(std::vector<int> fds) {
    std::sort(fds.begin(), fds.end());
    unsigned from = 3;
    for (const int fd : fds) {
        if (fd < static_cast<int>(from)) continue;
        if (fd > static_cast<int>(from)) ::syscall(SYS_close_range, from, static_cast<unsigned>(fd - 1), 0);
        from = static_cast<unsigned>(fd) + 1;
    }
    ::syscall(SYS_close_range, from, ~0u, 0);
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3 && null >= 0; ++fd) ::dup2(null, fd);
    if (null > 2) ::close(null);
}

class LockKeeper {
public:
    LockKeeper(const World &world, const Supervision &what, const Owner &owner)
        : world_(world), what_(what), owner_(owner), limit_(what.soft, what.hard), begun_(world.now()) {}
    // Returns when the command has ended.
    RunEnd watch(const ProcessHandle &command, int requests);

private:
    RunTree tree() const;

    const World &world_;
    const Supervision &what_;
    const Owner &owner_;
    LifeLimit limit_;
    Moment begun_;
};

RunTree LockKeeper::tree() const {
    return RunTree({.leader = owner_.process, .cookie = owner_.cookie, .not_before = owner_.process.start_ticks});
}

RunEnd LockKeeper::watch(const ProcessHandle &command, int requests) {
    RunEnd end;
    end.started = true;
    end.status = -1;
    end.outcome = Outcome::done;
    bool expire = false;
    while (!expire) {
        const std::int64_t age = world_.now().mono - begun_.mono;
        const std::int64_t left = limit_.next() == no_limit ? 0 : std::max<std::int64_t>(0, limit_.next() - age);
        const timespec wait = {left / second, left % second};
        pollfd both[] = {{command.fd(), POLLIN, 0}, {requests, POLLIN, 0}};
        const int ready = ::ppoll(both, 2, limit_.next() == no_limit ? nullptr : &wait, nullptr);
        if (ready > 0 && both[0].revents != 0) break;
        signalfd_siginfo info = {};
        if (ready > 0 && ::read(requests, &info, sizeof info) == sizeof info)
            expire = info.ssi_code == SI_QUEUE && info.ssi_int == expire_request;
        RunTree all = tree();
        if (ready == 0) expire = limit_.over(world_.now().mono - begun_.mono, usage_of(all));
        if (!expire) continue;
        const KillReport killed = end_tree(all, what_.grace);
        if (killed.result != Killed::gone) all.wait_for_all();
        end.status = 124;
        end.outcome = Outcome::expired;
        end.text = killed.text;
    }
    end.ended = world_.now();
    end.runtime = end.ended.mono - begun_.mono;
    end.progressing = limit_.progressing();
    return end;
}

// `ready`: the keeper writes a byte when it has taken over. `fate`: reads a byte if the command could not be executed,
// and end of file if it was executed or its process ended.
[[noreturn]] void be_keeper(const World &world, const Supervision &what, Owner owner, int ready, int fate) {
    sigset_t all, asked;
    sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    sigemptyset(&asked);
    sigaddset(&asked, SIGTERM);
    ::setsid();
    owner.supervisor = own_identity();
    const Result<ProcessHandle> command = ProcessHandle::open(owner.process);
    const int requests = ::signalfd(-1, &asked, SFD_CLOEXEC);
    if (!command || requests < 0) ::_exit(1);
    std::vector<int> kept = what.lock_fds;
    kept.insert(kept.end(), {command->fd(), requests, ready, fate});
    keep_only(std::move(kept));
    if (::chdir("/") != 0) {}  // keeps no file system busy; failure is harmless
    ::prctl(PR_SET_NAME, "dcs_lock-keeper");
    if (what.started) what.started(owner);
    char byte = 'k';
    if (::write(ready, &byte, 1) != 1) ::_exit(1);
    ::close(ready);
    ssize_t n = 0;
    while ((n = ::read(fate, &byte, 1)) < 0 && errno == EINTR) {}
    if (n != 0) ::_exit(0);
    ::close(fate);
    const RunEnd end = LockKeeper(world, what, owner).watch(*command, requests);
    failpoint("locks.keeper.before_end");
    if (what.ended) what.ended(end);
    ::_exit(0);
}

struct Pipe {
    Fd out, in;
};

Pipe open_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {};
    return {Fd(ends[0]), Fd(ends[1])};
}

// Forks twice, so that the command has no child that it did not create. Returns the descriptor that reports the
// command's fate to the keeper; none on failure.
Fd start_keeper(const World &world, const Supervision &what, const Owner &owner) {
    Pipe ready = open_pipe(), told = open_pipe();
    if (!ready.in || !told.in) return {};
    const pid_t between = ::fork();
    if (between == 0) {
        const pid_t keeper = ::fork();
        if (keeper != 0) ::_exit(keeper < 0 ? 1 : 0);
        be_keeper(world, what, owner, ready.in.get(), told.out.get());
    }
    ready.in = Fd();
    while (between > 0 && ::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {}
    char byte = 0;
    ssize_t n = -1;
    while (between > 0 && (n = ::read(ready.out.get(), &byte, 1)) < 0 && errno == EINTR) {}
    return n == 1 ? std::move(told.in) : Fd();
}

}  // namespace

RunEnd become(const World &world, const Supervision &what, std::uint64_t cookie) {
    RunEnd end;
    end.status = 125;
    Owner owner = owner_of(world, what, ::getpid(), cookie);
    // Group and session are older than the run and may contain other processes, so the record names neither.
    Fd fate;
    if (what.keep == Keep::exec) {
        if (!planted("locks.no_keeper") && !(fate = start_keeper(world, what, owner))) {
            end.text = "cannot start the keeper of the lock: " + std::string(std::strerror(errno));
            return end;
        }
    } else if (what.started) {
        what.started(owner);
    }
    std::vector<std::string> variables = what.environment;
    for (std::string &variable : cookie_variables(cookie)) variables.push_back(std::move(variable));
    Environment environment(variables);
    const std::vector<char *> argv = pointers_to(what.argv);
    if (!hand_on(what.lock_fds)) {
        end.text = "cannot keep the lock open: " + std::string(std::strerror(errno));
    } else {
        ::execvpe(argv[0], argv.data(), environment.pointers.data());
        end.status = status_of_exec(errno);
        end.text = "cannot run " + what.argv[0] + ": " + std::strerror(errno);
    }
    const char failed = 'x';
    if (fate) (void)!::write(fate.get(), &failed, 1);
    return end;
}

}  // namespace dcs::locks
