#include "locks/spawn.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/require.h"
#include "base/text.h"
#include "base/planted.h"
#include "locks/files/world.h"

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

}  // namespace dcs::locks
