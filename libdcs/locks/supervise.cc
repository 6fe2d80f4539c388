#include "locks/supervision.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/fd.h"
#include "base/planted.h"
#include "locks/run_tree.h"
#include "locks/spawn.h"
#include "locks/files/world.h"

namespace dcs::locks {
namespace {

constexpr int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

Usage waited_for() {
    rusage used = {};
    ::getrusage(RUSAGE_CHILDREN, &used);
    const auto ns = [](const timeval &t) { return t.tv_sec * second + t.tv_usec * 1000; };
    return {ns(used.ru_utime) + ns(used.ru_stime), (used.ru_inblock + used.ru_oublock) * std::int64_t{512}};
}

bool has_children() {
    siginfo_t info;
    return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

bool has_terminal() { return static_cast<bool>(Fd(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK))); }

class Run {
public:
    Run(const World &world, const Supervision &what, std::uint64_t cookie)
        : world_(world), what_(what), limit_(what.soft, what.hard), cookie_(cookie) {}
    RunEnd whole();

private:
    void prepare();
    bool start(RunEnd &end);
    void attend();
    void take(const siginfo_t &info);
    void reap();
    bool anybody_left() const;
    void expire();
    RunTree tree() const;
    RunEnd report() const;

    const World &world_;
    const Supervision &what_;
    LifeLimit limit_;
    std::uint64_t cookie_;
    SpawnPlan plan_;
    sigset_t watched_ = {};
    std::set<pid_t> strangers_;
    Usage before_;
    Owner owner_;
    Moment begun_;
    pid_t child_ = -1;
    int wait_status_ = 0;
    bool child_over_ = false, expired_ = false;
    std::string text_;
};

void Run::prepare() {
    sigemptyset(&watched_);
    for (const int number : passed_on) sigaddset(&watched_, number);
    sigaddset(&watched_, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &watched_, &plan_.mask);
    struct sigaction plain = {};
    plain.sa_handler = SIG_DFL;  // if it were ignored, children would leave no status
    ::sigaction(SIGCHLD, &plain, &plan_.child_action);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (has_children() && !planted("locks.own_children_alone"))
        for (const pid_t pid : own_children()) strangers_.insert(pid);
    before_ = waited_for();
    plan_.what = &what_;
    plan_.environment = what_.environment;
    for (std::string &variable : cookie_variables(cookie_)) plan_.environment.push_back(std::move(variable));
    if (what_.soft != no_limit || what_.hard != no_limit || what_.keep == Keep::tree) plan_.leaf = make_leaf(cookie_);
    plan_.own_group = !has_terminal();
    plan_.die_with_us = what_.keep == Keep::leader;
    plan_.hand_on_locks = what_.keep != Keep::leader && !planted("locks.no_copy_for_command");
}

bool Run::start(RunEnd &end) {
    begun_ = world_.now();
    const Spawned spawned = spawn(plan_);
    if (spawned.pid < 0) {
        end.status = spawned.step[0] == 0 ? status_of_exec(spawned.error) : 125;
        end.text = "cannot run " + what_.argv[0] + ": " +
                   (spawned.step[0] == 0 ? "" : spawned.step + std::string(": ")) + std::strerror(spawned.error);
        remove_leaf(plan_.leaf);
        return false;
    }
    child_ = spawned.pid;
    if (!spawned.in_leaf && !plan_.leaf.empty()) {
        remove_leaf(plan_.leaf);
        plan_.leaf.clear();
    }
    failpoint("locks.supervise.before_record");
    owner_ = owner_of(world_, what_, child_, cookie_);
    owner_.supervisor = own_identity();
    owner_.group = plan_.own_group ? child_ : 0;
    owner_.cgroup = plan_.leaf;
    if (what_.started) what_.started(owner_);
    return true;
}

void Run::reap() {
    for (;;) {
        int status = 0;
        const pid_t pid = ::waitpid(-1, &status, WNOHANG);
        if (pid < 0 && errno == EINTR) continue;
        if (pid <= 0) return;
        if (pid == child_) {
            child_over_ = true;
            wait_status_ = status;
        }
    }
}

bool Run::anybody_left() const {
    if (!child_over_) return true;
    if (what_.keep != Keep::tree || !has_children()) return false;
    const std::vector<pid_t> children = own_children();
    return std::any_of(children.begin(), children.end(), [&](pid_t pid) { return !strangers_.contains(pid); });
}

void Run::take(const siginfo_t &info) {
    if (info.si_signo == SIGCHLD) return reap();
    if (info.si_signo == SIGTERM && info.si_code == SI_QUEUE && info.si_value.sival_int == expire_request)
        return expire();
    // The terminal sends its signals to the command too if that is in the supervisor's process group.
    const bool had_it = info.si_code == SI_KERNEL && (info.si_signo == SIGINT || info.si_signo == SIGQUIT);
    if (!child_over_ && (!had_it || plan_.own_group)) ::kill(child_, info.si_signo);
}

void Run::attend() {
    while (!expired_ && anybody_left()) {
        const std::int64_t age = world_.now().mono - begun_.mono;
        siginfo_t info = {};
        int number = -1;
        if (limit_.next() == no_limit) {
            number = ::sigwaitinfo(&watched_, &info);
        } else if (age < limit_.next()) {
            const std::int64_t left = limit_.next() - age;
            const timespec wait = {left / second, left % second};
            number = ::sigtimedwait(&watched_, &info, &wait);
        } else {
            RunTree all = tree();
            if (limit_.over(age, usage_of(all))) expire();
        }
        if (number > 0) take(info);
    }
}

RunTree Run::tree() const {
    return RunTree({.leader = owner_.process,
                    .parent = owner_.supervisor,
                    .group = owner_.group,
                    .cookie = cookie_,
                    .not_before = owner_.process.start_ticks,
                    .leaf = plan_.leaf,
                    .strangers = strangers_});
}

void Run::expire() {
    expired_ = true;
    RunTree all = tree();
    const KillReport killed = end_tree(all, what_.grace);
    text_ = killed.text;
    // A process that could not be ended may still be at work, so the lock is kept until it has ended.
    if (killed.result != Killed::gone) all.wait_for_all();
    reap();
}

RunEnd Run::report() const {
    RunEnd end;
    end.started = true;
    end.ended = world_.now();
    end.runtime = end.ended.mono - begun_.mono;
    const Usage used = waited_for();
    end.cpu = used.cpu - before_.cpu;
    end.io = used.io - before_.io;
    end.progressing = limit_.progressing();
    end.text = text_;
    end.status = WIFSIGNALED(wait_status_) ? 128 + WTERMSIG(wait_status_) : WEXITSTATUS(wait_status_);
    end.outcome = end.status == 0 ? Outcome::done : Outcome::failed;
    if (expired_) {
        end.status = 124;
        end.outcome = Outcome::expired;
    }
    return end;
}

RunEnd Run::whole() {
    RunEnd end;
    prepare();
    if (!start(end)) return end;
    attend();
    end = report();
    remove_leaf(plan_.leaf);
    return end;
}

std::uint64_t drawn_cookie() {
    std::uint64_t cookie = 0;
    while (cookie == 0)
        if (::getrandom(&cookie, sizeof cookie, 0) != sizeof cookie && errno != EINTR)
            cookie = static_cast<std::uint64_t>(::getpid()) << 32 ^ own_identity().start_ticks;
    return cookie;
}

}  // namespace

Owner owner_of(const World &world, const Supervision &what, pid_t pid, std::uint64_t cookie) {
    Owner owner;
    const Result<ProcessIdentity> process = identify(pid);
    ProcessStat stat;
    owner.process = process ? *process : ProcessIdentity{pid, read_stat(pid, stat) ? stat.start_time : 0, 0};
    owner.uid = ::getuid();
    owner.boot = world.boot;
    owner.pid_namespace = world.pid_namespace;
    owner.cookie = cookie;
    owner.host = world.host;
    for (const std::string &word : what.argv) owner.command += (owner.command.empty() ? "" : " ") + word;
    return owner;
}

RunEnd supervise(const World &world, const Supervision &what) {
    RunEnd end;
    if (what.argv.empty() || what.argv[0].empty()) {
        end.status = 127;
        end.text = "no command was given";
        return end;
    }
    const std::uint64_t cookie = what.cookie != 0 ? what.cookie : drawn_cookie();
    if (what.keep == Keep::exec || what.keep == Keep::fd) return become(world, what, cookie);
    return Run(world, what, cookie).whole();
}

}  // namespace dcs::locks
