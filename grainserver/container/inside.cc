#include "grainserver/container/inside.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/confinement.h"
#include "base/status.h"
#include "base/text.h"
#include "grainserver/container/words.h"
#include "grainserver/files/syscall_filter.h"
#include "process/landlock.h"

namespace dcs::container {
namespace {

void say(Said said, int value) {
    const Line line{said, value};
    (void)::send(line_fd, &line, sizeof line, MSG_NOSIGNAL);
}

// rung_files and rung_namespaces are those of the container itself: all mounts but the grain's own are read-only.
int confine(std::uint32_t rungs) {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    if ((rungs & rung_scope) != 0) {
        const int ruleset = landlock::new_ruleset(0, landlock::abstract_sockets | landlock::signals);
        if (ruleset < 0) return errno;
        const int error = landlock::restrict_self(ruleset);
        ::close(ruleset);
        if (error != 0) return error;
    }
    if ((rungs & (rung_filter | rung_no_network)) == 0) return 0;
    const auto filter = files::syscall_filter(files::filter_wish(rungs));
    return filter.empty() ? ENOSYS : files::put_filter_on(filter);
}

std::string search_path(const std::vector<std::string> &env) {
    for (const std::string &item : env)
        if (item.starts_with("PATH=")) return item.substr(5);
    return "/usr/local/bin:/usr/bin:/bin";
}

// As execvp(3) with the PATH of the grain. An errno.
int execute(const Words &words) {
    const std::vector<char *> argv = pointers_to(words.argv), env = pointers_to(words.env);
    if (words.program.find('/') != std::string::npos) {
        ::execve(words.program.c_str(), argv.data(), env.data());
        return errno;
    }
    int error = ENOENT;
    const std::string all = search_path(words.env) + ":";
    for (std::size_t from = 0, to = 0; (to = all.find(':', from)) != std::string::npos; from = to + 1) {
        const std::string path = (to == from ? "." : all.substr(from, to - from)) + "/" + words.program;
        ::execve(path.c_str(), argv.data(), env.data());
        if (errno != ENOENT && errno != ENOTDIR) error = errno;
    }
    return error;
}

[[noreturn]] void become_grain(const Words &words) {
    ::setsid();
    if (::dup2(in_fd, 0) < 0 || ::dup2(out_fd, 1) < 0 || ::dup2(err_fd, 2) < 0 ||
        (!words.directory.empty() && ::chdir(words.directory.c_str()) != 0)) {
        say(Said::failed, errno);
        ::_exit(127);
    }
    ::fcntl(line_fd, F_SETFD, FD_CLOEXEC);
    for (const int fd : {words_fd, in_fd, out_fd, err_fd}) ::close(fd);
    ::syscall(SYS_close_range, 8u, ~0u, 0u);
    for (const int signal : {SIGPIPE, SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) ::signal(signal, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::umask(words.umask);
    say(Said::begun, 0);  // before the filter, and while nothing of the grain has run
    if (const int error = confine(words.rungs); error != 0) say(Said::confinement_failed, error);
    else say(Said::failed, execute(words));
    ::_exit(127);
}

}  // namespace

int run_inside() {
    Words words;
    if (!unpack(words_fd, words)) return 125;
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // it has no filter: the grain, which has, shall not write in its memory
    sigset_t child_ended;
    ::sigemptyset(&child_ended);
    ::sigaddset(&child_ended, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &child_ended, nullptr);
    const int signals = ::signalfd(-1, &child_ended, SFD_CLOEXEC);
    const pid_t grain = signals < 0 ? -1 : ::fork();
    if (grain < 0) return 125;
    if (grain == 0) become_grain(words);
    for (const int fd : {words_fd, in_fd, out_fd, err_fd}) ::close(fd);
    for (bool running = true; running;) {
        std::array<pollfd, 2> ready = {pollfd{signals, POLLIN, 0}, pollfd{line_fd, 0, 0}};
        if (::poll(ready.data(), ready.size(), -1) < 0) continue;
        if (ready[1].revents != 0) return 125;  // the process outside was killed: so is the container
        signalfd_siginfo info{};
        (void)!::read(signals, &info, sizeof info);
        int status = 0;
        for (pid_t ended = 0; running && (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)  // orphans come here too
            if (ended == grain) running = false;
        if (!running) say(Said::ended, status);
    }
    return 0;  // the kernel ends all that is left in the container
}

}  // namespace dcs::container
