#include "grainserver/container/child.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dcs::container {
namespace {

constexpr off_t tail_bytes = 2000;

std::vector<char *> pointers(const std::vector<std::string> &words) {
    std::vector<char *> list;
    for (const std::string &word : words) list.push_back(const_cast<char *>(word.c_str()));
    list.push_back(nullptr);
    return list;
}

// The variables by which podman finds itself to be the one that its rootless parent starts in the user namespace: that
// is what this program has made already, with one uid and without helpers that have privileges.
std::vector<std::string> variables(const Environment &environment) {
    std::vector<std::string> all = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C.UTF-8",
                                    "HOME=" + environment.home, "TMPDIR=" + environment.home};
    if (environment.configs.empty()) return all;
    for (const char *name : {"CONTAINERS_CONF=", "CONTAINERS_STORAGE_CONF=", "CONTAINERS_REGISTRIES_CONF="}) {
        const std::string key(name);
        const std::string file = key == "CONTAINERS_CONF="           ? "containers.conf"
                                 : key == "CONTAINERS_STORAGE_CONF=" ? "storage.conf"
                                                                     : "registries.conf";
        all.push_back(key + environment.configs + "/" + file);
    }
    all.push_back("XDG_RUNTIME_DIR=" + environment.home);
    all.push_back("_CONTAINERS_USERNS_CONFIGURED=done");
    all.push_back("_CONTAINERS_ROOTLESS_UID=" + std::to_string(::geteuid()));
    all.push_back("_CONTAINERS_ROOTLESS_GID=" + std::to_string(::getegid()));
    return all;
}

[[noreturn]] void become(const std::vector<char *> &argv, const std::vector<char *> &env, const std::vector<int> &fds,
                         int log) {
    constexpr int aside = 100;  // above all that are open here, and all places
    const int null = ::open("/dev/null", O_RDONLY);
    bool good = null >= 0;
    for (std::size_t i = 0; i < fds.size(); ++i) good = good && ::dup2(fds[i], aside + static_cast<int>(i)) >= 0;
    good = good && ::dup2(null, 0) == 0 && ::dup2(log, 1) == 1 && ::dup2(log, 2) == 2;
    for (std::size_t i = 0; i < fds.size(); ++i)
        good = good && ::dup2(aside + static_cast<int>(i), 3 + static_cast<int>(i)) >= 0;
    ::syscall(SYS_close_range, static_cast<unsigned>(3 + fds.size()), ~0u, 0u);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (good) ::execve(argv[0], argv.data(), env.data());
    ::_exit(127);
}

std::vector<pid_t> children() {
    std::vector<pid_t> pids;
    std::ifstream list("/proc/self/task/" + std::to_string(::getpid()) + "/children");
    for (pid_t pid = 0; list >> pid;) pids.push_back(pid);
    return pids;
}

}  // namespace

void end_all() {
    int status = 0;
    for (;;) {
        for (const pid_t pid : children()) ::kill(pid, SIGKILL);
        if (::waitpid(-1, &status, 0) < 0 && errno != EINTR) return;
    }
}

pid_t start(const std::vector<std::string> &argv, const Environment &environment, const std::vector<int> &fds,
            int log) {
    const std::vector<std::string> env = variables(environment);
    const std::vector<char *> words = pointers(argv), entries = pointers(env);
    const pid_t child = ::fork();
    if (child == 0) become(words, entries, fds, log);
    return child;
}

int run(const std::vector<std::string> &argv, const Environment &environment, int log,
        const std::function<bool()> &goes_on) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds longest(100);
    const pid_t child = start(argv, environment, {}, log);
    auto pause = goes_on ? Clock::duration(std::chrono::milliseconds(1)) : Clock::duration(longest);
    int status = -1;
    while (child > 0) {
        const pid_t ended = ::waitpid(child, &status, goes_on ? WNOHANG : 0);
        if (ended == child) return status;
        if (ended < 0 && errno != EINTR) return -1;
        if (ended != 0) continue;
        const auto before = Clock::now();
        if (!goes_on()) {
            end_all();
            return -1;
        }
        // At most half of the time is spent in looking.
        pause = std::max(std::min(pause * 2, Clock::duration(longest)), Clock::now() - before);
        std::this_thread::sleep_for(pause);
    }
    return -1;
}

std::string tail_of(int log) {
    struct stat st {};
    if (::fstat(log, &st) != 0) return "";
    const off_t from = st.st_size > tail_bytes ? st.st_size - tail_bytes : 0;
    std::string text(static_cast<std::size_t>(st.st_size - from), '\0');
    const ssize_t n = ::pread(log, text.data(), text.size(), from);
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return text;
}

}  // namespace dcs::container
