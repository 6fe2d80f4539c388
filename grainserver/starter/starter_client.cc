#include "grainserver/starter/starter_client.h"
#include "grainserver/files/say.h"

#include <csignal>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/require.h"
#include "process/spawn.h"

namespace dcs::starter {
namespace {

// The starter's side. What was open is the launcher's, its locks among them; signals stay blocked.
[[noreturn]] void serve(const std::string &directory, Cgroups &cgroups, pid_t launcher, int socket) {
    ::prctl(PR_SET_NAME, "dcs_starter", 0, 0, 0);
    ::umask(077);
    DCS_REQUIRE(socket > 2, "the standard streams stay open");
    keep_descriptors({socket});
    Starter starter(directory, cgroups, launcher);
    if (const Status s = starter.open(); !s) {
        files::say(s.text);
        ::_exit(1);
    }
    for (;;) {
        // Again each time: a change of identity cancels it.
        ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (::getppid() != launcher) ::_exit(0);
        static char packet[request_max + 1];
        const ssize_t n = ::recv(socket, packet, sizeof packet, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0 || ::getppid() != launcher) ::_exit(0);
        Fd fd;
        const Answer answer = starter.answer({packet, static_cast<std::size_t>(n)}, fd);
        const std::string bytes = to_packet(answer);
        const bool sent =
            fd ? send_packet(socket, bytes, fd.get()) : ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0;
        if (!sent) ::_exit(0);
    }
}

Request about(Ask ask, const std::string &dir, const std::string &leaf = "") {
    return {.ask = ask, .dir = dir, .leaf = leaf};
}
Request about(Ask ask, pid_t pid, std::int64_t number = 0) {
    return {.ask = ask, .pid = static_cast<std::uint32_t>(pid), .number = number};
}

}  // namespace

Status StarterClient::start(const std::string &directory, Cgroups &cgroups) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return fail_errno(Code::io_error, "cannot create a socket to the launcher's starter", errno);
    Fd ours(ends[0]);
    const Fd its(ends[1]);
    const pid_t launcher = ::getpid(), pid = ::fork();
    if (pid == 0) serve(directory, cgroups, launcher, its.get());
    if (pid < 0) return fail_errno(Code::io_error, "cannot start the launcher's starter", errno);
    DCS_REQUIRE(pid > 1, "only the parent returns from fork");
    pid_ = pid;
    socket_ = std::move(ours);
    return Status::ok();
}

std::string StarterClient::how_it_ended() {
    constexpr int tries = 20;  // its sockets are closed a moment before it can be collected
    int status = 0;
    for (int i = 0; pid_ > 0 && i < tries; ++i) {
        if (::waitpid(pid_, &status, WNOHANG) == pid_) pid_ = 0;
        else ::poll(nullptr, 0, 10);
    }
    if (pid_ != 0) return "does not answer";
    if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
    return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

Answer StarterClient::ask(const Request &request, Fd *fd) {
    const std::string packet = to_packet(request);
    Fd brought;
    if (within_ != nullptr) {
        const auto answer = read_answer(to_packet(within_->answer(packet, brought)));
        DCS_REQUIRE(answer, "an answer can be read");
        if (fd != nullptr) *fd = std::move(brought);
        return *answer;
    }
    const auto lost = [&] {
        lost_ = true;
        return Answer{.status = fail(Code::unreachable, "the launcher's starter has ended")};
    };
    if (lost_ || ::send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0) return lost();
    const auto bytes = receive_packet(socket_.get(), answer_max, brought);
    const auto answer = bytes ? read_answer(*bytes) : std::nullopt;
    if (!answer) return lost();
    if (fd != nullptr) *fd = std::move(brought);
    return *answer;
}

Answer StarterClient::start_grain(const std::string &dir, const std::string &leaf, int slots,
                                  std::vector<std::int32_t> indices) {
    Request request = about(Ask::start, dir, leaf);
    request.number = slots;
    request.list = std::move(indices);
    return ask(request);
}

Answer StarterClient::prove_grain(const std::string &dir) { return ask(about(Ask::prove, dir)); }

bool StarterClient::signal(const ProcessStat &process, int number) {
    Request request = about(Ask::signal, process.pid, number);
    request.amount = static_cast<std::int64_t>(process.start_time);
    return static_cast<bool>(ask(request).status);
}

bool StarterClient::signal(pid_t pid, int number) {
    ProcessStat process;
    return read_stat(pid, process) && signal(process, number);
}

bool StarterClient::signal_group(pid_t leader, int number) {
    return static_cast<bool>(ask(about(Ask::signal_group, leader, number)).status);
}

Result<std::string> StarterClient::mark(pid_t pid) {
    Answer answer = ask(about(Ask::mark, pid));
    if (!answer.status) return answer.status;
    if ((answer.bits & is_unclear) != 0) return fail(Code::limit, "its environment is not visible");
    if (answer.text.empty()) return fail(Code::not_found, "it is of no grain");
    return std::move(answer.text);
}

bool StarterClient::lower(pid_t pid) {
    const Answer answer = ask(about(Ask::lower, pid));
    return !answer.status || (answer.bits & is_lowered) != 0;
}

Leaf StarterClient::make_leaf(const Cgroups &cgroups, const std::string &name, const files::Limits &limits,
                              const Devices &denied) {
    if (!cgroups.usable()) return {};
    Request request = about(Ask::make_leaf, "", name);
    request.number = limits.processes;
    request.amount = limits.memory_mb;
    for (const Device &device : denied)
        for (const std::uint32_t number : {device.major, device.minor})
            request.list.push_back(static_cast<std::int32_t>(number));
    const Answer answer = ask(request);
    if (!answer.status) return {};
    Leaf leaf = cgroups.seen(name, limits, denied);
    leaf.memory = (answer.bits & limits_memory) != 0;
    leaf.processes = (answer.bits & limits_processes) != 0;
    return leaf;
}

void StarterClient::seal_leaf(const std::string &name) { ask(about(Ask::seal_leaf, "", name)); }

bool StarterClient::remove_leaf(const std::string &name) {
    return static_cast<bool>(ask(about(Ask::remove_leaf, "", name)).status);
}

void StarterClient::remove_group() { ask(about(Ask::remove_group, "")); }

Status StarterClient::end_orphan(const std::string &dir, const std::string &leaf) {
    return ask(about(Ask::end_orphan, dir, leaf)).status;
}

Result<pid_t> StarterClient::keeper(Fd &socket) {
    const Answer answer = ask(about(Ask::keeper, ""), &socket);
    if (!answer.status) return answer.status;
    return static_cast<pid_t>(answer.value);
}

Leftovers::Left StarterClient::clear(uid_t uid) {
    const Answer answer = ask(about(Ask::clear, static_cast<pid_t>(uid)));
    return answer.status ? static_cast<Leftovers::Left>(answer.value) : Leftovers::Left::nothing;
}

Result<StarterClient::Disk> StarterClient::disk(const std::string &dir, const std::vector<pid_t> &processes,
                                                bool only_open) {
    Request request = about(Ask::disk, dir);
    request.number = only_open ? 1 : 0;
    request.list.assign(processes.begin(),
                        processes.begin() + static_cast<std::ptrdiff_t>(std::min(processes.size(), list_max)));
    const Answer answer = ask(request);
    if (!answer.status) return answer.status;
    return Disk{answer.value, (answer.bits & too_deep) != 0, (answer.bits & too_many) != 0};
}

}  // namespace dcs::starter
