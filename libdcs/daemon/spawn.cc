#include "base/text.h"
#include "daemon/spawn.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DCS_CHILD_SIDE __attribute__((no_sanitize("address", "thread", "undefined"), noinline))
#else
#define DCS_CHILD_SIDE __attribute__((noinline))
#endif

namespace dcs {
namespace {

// Everything that the child needs, made ready by the parent: the child lives in the parent's memory
// while that is suspended, so it allocates nothing and takes no lock.
struct Plan {
    const char *program = nullptr, *directory = nullptr;
    char *const *argv = nullptr;
    char *const *envp = nullptr;
    int standard[3] = {-1, -1, -1};
    const int *inherit = nullptr;  // ascending
    std::size_t inherited = 0;
    bool new_session = false;
    const char *failed_step = nullptr;  // set by the child
    int error = 0;
};

DCS_CHILD_SIDE bool failed(Plan *plan, const char *step) {
    plan->error = errno;
    plan->failed_step = step;
    return false;
}

DCS_CHILD_SIDE void close_between(unsigned first, unsigned last) {
    if (first > last || ::syscall(SYS_close_range, first, last, 0) == 0) return;
    rlimit most = {};  // a kernel before 5.9
    ::getrlimit(RLIMIT_NOFILE, &most);
    for (unsigned fd = first; fd <= last && fd < most.rlim_cur && fd < 1u << 20; ++fd) ::close(static_cast<int>(fd));
}

DCS_CHILD_SIDE bool place_descriptors(Plan *plan) {
    // Before anything is opened: a listed number that is closed must not become something else.
    for (std::size_t i = 0; i < plan->inherited; ++i)
        if (::fcntl(plan->inherit[i], F_SETFD, 0) != 0) return failed(plan, "cannot pass a descriptor");
    // First out of the way of 0, 1, 2, then to their places: out = 0 and in = 1 must work, too.
    int high[3];
    for (int i = 0; i < 3; ++i) {
        int fd = plan->standard[i];
        high[i] = fd >= 0 ? ::fcntl(fd, F_DUPFD_CLOEXEC, 3) : ::open("/dev/null", O_RDWR | O_CLOEXEC);
        if (high[i] >= 0 && high[i] < 3) high[i] = ::fcntl(high[i], F_DUPFD_CLOEXEC, 3);  // /dev/null
        if (high[i] < 0) return failed(plan, "cannot pass the standard streams");
    }
    for (int i = 0; i < 3; ++i)
        if (::dup2(high[i], i) != i) return failed(plan, "cannot pass the standard streams");
    unsigned next = 3;
    for (std::size_t i = 0; i < plan->inherited; ++i) {
        const int fd = plan->inherit[i];
        close_between(next, static_cast<unsigned>(fd) - 1);
        next = static_cast<unsigned>(fd) + 1;
    }
    close_between(next, ~0u);
    return true;
}

DCS_CHILD_SIDE void reset_signals() {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

DCS_CHILD_SIDE bool become(Plan *plan) {
    if (plan->new_session && ::setsid() < 0) return failed(plan, "cannot start a session");
    if (!place_descriptors(plan)) return false;
    if (plan->directory != nullptr && ::chdir(plan->directory) != 0) return failed(plan, "cannot enter its directory");
    reset_signals();
    ::execve(plan->program, plan->argv, plan->envp);
    return failed(plan, "cannot execute it");
}

DCS_CHILD_SIDE int child_side(void *plan) {
    become(static_cast<Plan *>(plan));
    ::_exit(127);
}

// The child's stack: not the caller's, which the child's calls would overwrite.
pid_t clone_onto_stack(Plan *plan) {
    constexpr std::size_t stack_bytes = 256 * 1024;
    void *stack = ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return -1;
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler of ours may run in the child
    pid_t pid = ::clone(child_side, static_cast<char *>(stack) + stack_bytes, CLONE_VM | CLONE_VFORK | SIGCHLD, plan);
    int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::munmap(stack, stack_bytes);
    errno = error;
    return pid;
}

Code code_of(int error) {
    if (error == ENOENT || error == ENOTDIR) return Code::not_found;
    if (error == EACCES || error == EPERM) return Code::refused;
    return Code::io_error;
}

}  // namespace

Result<pid_t> spawn(const SpawnRequest &request) {
    std::vector<int> inherit = request.inherit;
    std::sort(inherit.begin(), inherit.end());
    inherit.erase(std::unique(inherit.begin(), inherit.end()), inherit.end());
    DCS_REQUIRE(inherit.empty() || inherit.front() > 2, "0, 1 and 2 are in, out and err");
    DCS_REQUIRE(!request.arguments.empty(), "a program has an argv[0]");
    const std::vector<char *> argv = pointers_to(request.arguments), envp = pointers_to(request.environment);
    Plan plan;
    plan.program = request.program.c_str();
    plan.directory = request.directory.empty() ? nullptr : request.directory.c_str();
    plan.argv = argv.data();
    plan.envp = envp.data();
    plan.standard[0] = request.in;
    plan.standard[1] = request.out;
    plan.standard[2] = request.err;
    plan.inherit = inherit.data();
    plan.inherited = inherit.size();
    plan.new_session = request.new_session;

    pid_t pid = clone_onto_stack(&plan);
    if (pid < 0) return fail_errno(Code::io_error, "cannot start " + request.program, errno);
    if (plan.failed_step == nullptr) return pid;
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {}
    return fail_errno(code_of(plan.error), request.program + ": " + plan.failed_step, plan.error);
}

std::vector<std::string> current_environment() {
    std::vector<std::string> result;
    for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) result.push_back(*entry);
    return result;
}

}  // namespace dcs
