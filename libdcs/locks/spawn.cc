#include "locks/spawn.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/fd.h"
#include "base/planted.h"
#include "base/require.h"
#include "base/text.h"
#include "locks/files/world.h"
#include "process/spawn.h"

namespace dcs::locks {
namespace {

constexpr rlim_t high_fd = 900, low_fd = 10, headroom = 64;

// The message of the child to the parent.
struct Word {
    int error = 0;
    const char *step = "";
};

[[noreturn]] void give_up(Word *word, const char *step) {
    word->error = errno;
    word->step = step;
    ::_exit(127);
}

[[noreturn]] void become_command(const SpawnPlan &plan, pid_t parent, char *const *argv, char *const *envp,
                                 Word *word) {
    if (plan.own_group && ::setpgid(0, 0) != 0) give_up(word, "setpgid");
    if (plan.die_with_us) {
        if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(word, "prctl");
        if (::getppid() != parent) ::_exit(127);  // the parent died before prctl took effect
    }
    if (plan.hand_on_locks && !hand_on(plan.what->lock_fds)) give_up(word, "keeping the lock");
    ::sigaction(SIGCHLD, &plan.child_action, nullptr);
    ::sigprocmask(SIG_SETMASK, &plan.mask, nullptr);
    ::execvpe(argv[0], argv, envp);
    give_up(word, "");
}

// The parent is suspended until the child has executed the command. The child has its own memory, so an error in it
// does not damage the parent. Joining a control group later would take a millisecond or more.
pid_t fork_and_stand_still(const std::string &leaf, bool *in_leaf) {
    const int group = leaf.empty() ? -1 : ::open(leaf.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    clone_args args;
    std::memset(&args, 0, sizeof args);
    args.flags = CLONE_VFORK | (group >= 0 ? CLONE_INTO_CGROUP : 0);
    args.exit_signal = SIGCHLD;
    args.cgroup = group >= 0 ? static_cast<unsigned>(group) : 0;
    long pid = ::syscall(SYS_clone3, &args, sizeof args);
    *in_leaf = pid >= 0 && group >= 0;
    if (pid < 0) pid = ::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (pid != 0 && group >= 0) ::close(group);
    return static_cast<pid_t>(pid);
}

// A process that wakes up now and then only to poll does not make progress.
constexpr std::int64_t cpu_share = 100;  // one part in a hundred of one processor
constexpr std::int64_t io_bytes_per_second = 1024;
constexpr std::size_t io_text_max = 4096;

std::int64_t number_after(std::string_view text, std::string_view word) {
    const std::size_t at = text.find(word);
    std::int64_t value = 0;
    if (at != std::string_view::npos) std::from_chars(text.data() + at + word.size(), text.data() + text.size(), value);
    return value;
}

std::int64_t io_of(const std::string &who) {
    const std::string text = kernel_text("/proc/" + who + "/io", io_text_max);
    return number_after(text, "rchar: ") + number_after(text, "wchar: ");
}

std::int64_t ns_of(const timeval &t) { return t.tv_sec * second + t.tv_usec * 1000; }

// The command's standard error as it is now, for what is said of its end. Without waiting for the reader of a FIFO
// that has none any more.
void take_error_stream(pid_t command) {
    const std::string path = "/proc/" + std::to_string(command) + "/fd/2";
    if (const Fd own(::open(path.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)); own)
        ::dup2(own.get(), 2);
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
    RunEnd end{.started = true, .status = -1, .outcome = Outcome::done};
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
        take_error_stream(owner_.process.pid);
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
    owner.supervisor = own_identity();
    const Result<ProcessHandle> command = ProcessHandle::open(owner.process);
    const int requests = ::signalfd(-1, &asked, SFD_CLOEXEC);
    if (!command || requests < 0) ::_exit(1);
    std::vector<int> kept = what.lock_fds;
    kept.insert(kept.end(), {command->fd(), requests, ready, fate});
    leave_the_caller(std::move(kept));
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
        if (const pid_t keeper = ::fork(); keeper != 0) ::_exit(keeper < 0 ? 1 : 0);
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

bool hand_on(const std::vector<int> &fds) {
    rlimit limit = {};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t from = limit.rlim_cur > low_fd + headroom ? std::min(high_fd, limit.rlim_cur - headroom) : low_fd;
    for (const int fd : fds)
        if (::fcntl(fd, F_DUPFD, static_cast<int>(from)) < 0) return false;
    return true;
}

Environment::Environment(const std::vector<std::string> &more) {
    const auto name_of = [](const std::string &text) { return text.substr(0, text.find('=') + 1); };
    for (char **variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
        const std::string text = *variable;
        if (std::none_of(more.begin(), more.end(), [&](const std::string &m) { return name_of(m) == name_of(text); }))
            texts.push_back(text);
    }
    texts.insert(texts.end(), more.begin(), more.end());
    pointers = pointers_to(texts);
}

void leave_the_caller(std::vector<int> kept) {
    ::setsid();
    ::prctl(PR_SET_NAME, "dcs_lock-keeper");
    if (::chdir("/") != 0) {}  // the directory stays busy, without other effect
    keep_descriptors(std::move(kept));
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3 && null >= 0; ++fd) ::dup2(null, fd);
    if (null > 2) ::close(null);
}

int status_of_exec(int error) { return error == ENOENT || error == ENOTDIR ? 127 : 126; }

Spawned spawn(const SpawnPlan &plan) {
    DCS_REQUIRE(plan.what != nullptr, "the plan has a command");
    Spawned spawned;
    void *shared = ::mmap(nullptr, sizeof(Word), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return {-1, errno, "mmap", false};
    Word *word = new (shared) Word;
    const std::vector<char *> argv = pointers_to(plan.what->argv);
    Environment environment(plan.environment);
    const pid_t parent = ::getpid();
    spawned.pid = fork_and_stand_still(plan.leaf, &spawned.in_leaf);
    if (spawned.pid == 0) become_command(plan, parent, argv.data(), environment.pointers.data(), word);
    if (spawned.pid < 0) {
        spawned.error = errno;
        spawned.step = "fork";
    } else if (word->error != 0) {
        spawned.error = word->error;
        spawned.step = word->step;
        while (::waitpid(spawned.pid, nullptr, 0) < 0 && errno == EINTR) {}
        spawned.pid = -1;
    }
    ::munmap(shared, sizeof(Word));
    return spawned;
}

Usage usage_of(RunTree &tree) {
    static const std::int64_t tick = second / ::sysconf(_SC_CLK_TCK);
    Usage sum;
    for (const ProcessStat &p : tree.look().processes) {
        ProcessStat now;
        if (!read_stat(p.pid, now) || now.start_time != p.start_time) continue;
        sum.cpu += static_cast<std::int64_t>(now.user_ticks + now.system_ticks) * tick;
        sum.io += io_of(std::to_string(p.pid));
        sum.wants = sum.wants || now.state == 'R';
    }
    rusage waited_for = {};
    ::getrusage(RUSAGE_CHILDREN, &waited_for);
    sum.cpu += ns_of(waited_for.ru_utime) + ns_of(waited_for.ru_stime);
    sum.io += (waited_for.ru_inblock + waited_for.ru_oublock) * std::int64_t{512};  // without the caller's own reads
    return sum;
}

LifeLimit::LifeLimit(std::int64_t soft, std::int64_t hard)
    : soft_(std::min(soft, hard)), hard_(hard), next_(soft_ == no_limit ? no_limit : soft_ - soft_ / 3) {
    DCS_REQUIRE(soft_ <= hard_, "the soft limit does not exceed the hard one");
}

// Checks are at 2/3, 1, 3/2, 9/4 ... of the soft limit: the previous check is always at the start of the last third.
bool LifeLimit::over(std::int64_t age, const Usage &usage) {
    if (next_ == no_limit || age < next_ || planted("locks.no_expiry")) return false;
    const std::int64_t passed = std::max<std::int64_t>(1, age - last_age_);
    progressing_ =
        usage.wants || usage.cpu - last_.cpu > passed / cpu_share ||
        usage.io - last_.io > static_cast<std::int64_t>(static_cast<double>(passed) / second * io_bytes_per_second);
    last_ = usage;
    last_age_ = age;
    if (age >= hard_ || (age >= soft_ && !progressing_)) return true;
    next_ = age < soft_ ? soft_ : std::min(hard_, age + age / 2);
    return false;
}

RunEnd become(const World &world, const Supervision &what, std::uint64_t cookie) {
    RunEnd end{.status = 125};
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
