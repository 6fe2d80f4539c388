#include "grainserver/container/child.h"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <sys/prctl.h>
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

}  // namespace

pid_t start(const std::vector<std::string> &argv, const Environment &environment, const std::vector<int> &fds,
            int log) {
    const std::vector<std::string> env = variables(environment);
    const std::vector<char *> words = pointers(argv), entries = pointers(env);
    const pid_t child = ::fork();
    if (child == 0) become(words, entries, fds, log);
    return child;
}

int run(const std::vector<std::string> &argv, const Environment &environment, int log) {
    const pid_t child = start(argv, environment, {}, log);
    int status = -1;
    while (child > 0 && ::waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return status;
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
