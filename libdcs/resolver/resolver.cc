#include "resolver/resolver.h"

#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "daemon/log.h"
#include "daemon/privileges.h"
#include "net/look_up.h"

namespace dcs {
namespace {

constexpr int at_once = 32;         // look-ups; the next wait in the socket
constexpr unsigned longest_s = 30;  // one
constexpr int collect_ms = 1000;    // processes that have ended
constexpr int patience_s = 1;       // the daemon never waits for an answer

Status settle(int &socket) {
    if (Status s = settle_side_process(socket, "dcs_resolver"); !s) return s;
    std::signal(SIGCHLD, SIG_DFL);
    if (Status s = give_up_capabilities(); !s) return s;
    if (const auto fenced = give_up_files({}, {"/"}); !fenced) return fenced.status();  // what it hands on
    if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return fail_errno(Code::io_error, "cannot make the process undumpable", errno);
    return give_up_calls({.children = true}).status();
}

[[noreturn]] void look_up_here(int socket, const std::string &request, int fd) {
    ::close(socket);
    ::alarm(longest_s);
    const auto fenced = give_up_files({}, files_of_names());
    const Status s = fenced ? give_up_calls().status() : fenced.status();
    if (!s) log_error(s.text);
    if (s) net::answer_look_up(request, fd);
    ::_exit(0);
}

void serve(int socket) {
    int under_way = 0;
    for (;;) {
        while (under_way > 0 && ::waitpid(-1, nullptr, under_way < at_once ? WNOHANG : 0) > 0) --under_way;
        pollfd asked{socket, POLLIN, 0};
        if (::poll(&asked, 1, under_way > 0 ? collect_ms : -1) <= 0) continue;
        Fd end;
        const auto request = receive_packet(socket, net::look_up_packet_max, end);
        if (!request) return;
        const pid_t pid = end ? ::fork() : -1;
        if (pid == 0) look_up_here(socket, *request, end.get());
        if (pid > 0) ++under_way;
    }
}

[[noreturn]] void run(int socket) {
    const Status s = settle(socket);
    if (!s) log_error(s.text);
    if (s) serve(socket);
    ::_exit(s ? 0 : 1);
}

}  // namespace

Status start_resolver(const std::string &daemon, std::unique_ptr<SideProcess> &resolver) {
    auto process = SideProcess::start({daemon + "'s resolver", daemon}, patience_s, run);
    if (!process) return process.status();
    resolver = std::move(*process);
    net::look_up_by(resolver->fd());
    return Status::ok();
}

}  // namespace dcs
