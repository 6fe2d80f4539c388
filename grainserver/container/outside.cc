#include "grainserver/container/outside.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/confinement.h"
#include "grainserver/container/podman.h"
#include "grainserver/container/image.h"
#include "grainserver/container/words.h"

namespace dcs::container {
namespace {

constexpr int elsewhere = 74;  // D_EXIT_WRITE_ERROR, of a grain that has announced itself: it goes on elsewhere
constexpr int no_program = 127, not_executable = 126;

// The fault is this host's. Only a grain that has announced itself may say so by its exit status.
int give_back(const std::string &room, const std::string &why) {
    std::fprintf(stderr, "the container cannot be started on this host: %s\n", why.c_str());
    const int fd = ::open((room + "/announce").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) ::close(fd);
    return elsewhere;
}

[[noreturn]] void end_by(int signal) {
    ::signal(signal, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::kill(::getpid(), signal);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::_exit(128 + signal);
}

class Supervision {
public:
    Supervision(int line, int signals, pid_t engine) : line_(line), signals_(signals), engine_(engine) {}

    // Until the grain has ended, or podman without starting it.
    void run() {
        while (!ended_ && !closed_ && (begun() || !engine_ended_)) {
            std::array<pollfd, 2> ready = {pollfd{line_, POLLIN, 0}, pollfd{signals_, POLLIN, 0}};
            if (::poll(ready.data(), ready.size(), -1) < 0) continue;
            if (ready[1].revents != 0) take_signal();
            if (ready[0].revents != 0) listen();
        }
        while (!closed_ && listen()) {}  // what it said before podman ended
    }

    std::optional<int> status() const { return ended_; }
    std::optional<Line> failure() const { return failure_; }
    bool begun() const { return grain_ > 0; }

private:
    void take_signal() {
        signalfd_siginfo info{};
        if (::read(signals_, &info, sizeof info) != sizeof info) return;
        if (const int signal = static_cast<int>(info.ssi_signo); signal == SIGCHLD) {
            int status = 0;
            for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
                engine_ended_ = engine_ended_ || pid == engine_;
        } else if (grain_ > 0) {
            ::kill(grain_, signal);
        } else if (signal != SIGUSR1 && signal != SIGUSR2) {  // nothing of the grain has run
            end_all();
            end_by(signal);
        }
    }

    // False: there is no more now.
    bool listen() {
        Line line{};
        iovec part{&line, sizeof line};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
        msghdr message{.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        const ssize_t n = ::recvmsg(line_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n == 0) closed_ = true;
        if (n != static_cast<ssize_t>(sizeof line)) return false;
        // podman has done its part: all that it still would do is take memory.
        if (line.said == Said::begun && !engine_ended_) ::kill(engine_, SIGKILL);
        if (line.said == Said::begun)
            for (cmsghdr *c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c))
                if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
                    ucred sender{};
                    std::memcpy(&sender, CMSG_DATA(c), sizeof sender);
                    grain_ = sender.pid;
                }
        if (line.said == Said::ended) ended_ = line.value;
        if (line.said == Said::failed || line.said == Said::confinement_failed) failure_ = line;
        return true;
    }

    int line_, signals_;
    pid_t engine_, grain_ = 0;
    bool engine_ended_ = false, closed_ = false;
    std::optional<int> ended_;
    std::optional<Line> failure_;
};

Words words_for(const Wanted &wanted, const Mounts &mounts, mode_t mask) {
    return {.rungs = wanted.rungs,
            .umask = mask,
            .directory = wanted.directory.empty() ? wanted.room + "/work" : wanted.directory,
            .program = mounts.program.empty() ? wanted.program : mounts.program_inside(),
            .argv = wanted.argv,
            .env = wanted.env};
}

int report(const Wanted &wanted, const Supervision &run, int log) {
    if (const auto failure = run.failure(); failure && failure->said == Said::confinement_failed)
        return give_back(wanted.room, std::string("its confinement: ") + std::strerror(failure->value));
    if (const auto failure = run.failure()) {
        std::fprintf(stderr, "%s cannot be started in the container: %s\n", wanted.program.c_str(),
                     std::strerror(failure->value));
        return failure->value == ENOENT ? no_program : not_executable;
    }
    if (const auto status = run.status()) {
        if (WIFSIGNALED(*status)) end_by(WTERMSIG(*status));
        return WEXITSTATUS(*status);
    }
    if (run.begun()) end_by(SIGKILL);  // the container was ended from outside
    return give_back(wanted.room, "podman: " + tail_of(log));
}

int run_container(const Wanted &wanted, mode_t mask, const std::string &rootfs, int signals) {
    const std::string state = std::string(private_place) + "/run";
    char self[4096];
    const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
    const std::string runner(self, length > 0 ? static_cast<std::size_t>(length) : 0);
    const Mounts mounts{mount_root(rootfs, wanted.grains), wanted.grains, wanted.room, runner, wanted.brought,
                        gpu_devices(wanted.gpus)};
    if ((mounts.rootfs + wanted.room + runner + wanted.brought).find(':') != std::string::npos)
        return give_back(wanted.room, "podman takes no path with a colon: " + wanted.room);
    if (const std::string wrong = write_configs(state, state + "/graph"); !wrong.empty())
        return give_back(wanted.room, wrong);
    const Fd words(pack(words_for(wanted, mounts, mask))), log(::memfd_create("podman", MFD_CLOEXEC));
    int ends[2];
    const int yes = 1;
    if (!words || !log || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return give_back(wanted.room, std::strerror(errno));
    const Fd line(ends[0]);
    Fd theirs(ends[1]);
    if (::setsockopt(line.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0)
        return give_back(wanted.room, std::strerror(errno));
    const pid_t engine = start(podman_command(mounts, (wanted.rungs & rung_no_network) == 0), {state, state},
                               {words.get(), theirs.get(), 0, 1, 2}, log.get());
    if (engine < 0) return give_back(wanted.room, std::strerror(errno));
    theirs = Fd();
    Supervision run(line.get(), signals, engine);
    run.run();
    end_all();
    return report(wanted, run, log.get());
}

}  // namespace

int run_outside(const Wanted &wanted) {
    sigset_t taken;
    ::sigemptyset(&taken);
    for (const int signal : {SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGALRM, SIGWINCH})
        ::sigaddset(&taken, signal);
    const mode_t mask = ::umask(022);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (const std::string wrong = enter_namespaces(); !wrong.empty()) return give_back(wanted.room, wrong);
    const Rootfs rootfs =
        take_rootfs(wanted.archive, wanted.store, wanted.hex, wanted.images);  // a signal ends it here
    ::close(wanted.archive);  // else the grain keeps what the server has removed
    if (!rootfs.error.empty() && !rootfs.of_image) return give_back(wanted.room, rootfs.error);
    if (!rootfs.error.empty()) {
        std::fprintf(stderr, "%s\n", rootfs.error.c_str());
        return not_executable;
    }
    ::sigprocmask(SIG_BLOCK, &taken, nullptr);
    const Fd signals(::signalfd(-1, &taken, SFD_CLOEXEC));
    if (!signals) return give_back(wanted.room, std::strerror(errno));
    return run_container(wanted, mask, rootfs.path, signals.get());
}

}  // namespace dcs::container
