// What daemons say when the kernel refuses them what they need to begin, to give up their rights, or to start programs.
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/privileges.h"
#include "daemon/peer_name.h"
#include "daemon/service.h"
#include "daemon/side_process.h"
#include "process/spawn.h"
#include "support/about.h"
#include "support/catch.h"
#include "support/refuse.h"

using namespace dcs;
using dcs::test::Refusing;

namespace {

const std::string giving_up = "dropping privileges: ", not_permitted = ": Operation not permitted";

// What a process of its own says, which gives up what this one needs.
std::string told(const char *call, int error, long number, int skip, const std::function<std::string()> &body) {
    int said[2];
    REQUIRE(::pipe(said) == 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
        dcs_refuse(dcs::test::order(call, error, number < 0 ? "" : std::to_string(number), skip).c_str());
        const std::string text = body();
        dcs_refuse("");
        ::_exit(::write(said[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    ::close(said[1]);
    char text[1024];
    const ssize_t n = ::read(said[0], text, sizeof text);
    ::close(said[0]);
    ::waitpid(pid, nullptr, 0);
    return std::string(text, n > 0 ? static_cast<std::size_t>(n) : 0);
}

std::string capabilities() { return give_up_capabilities().text; }
std::string files() { return give_up_files({"/tmp"}, {"/usr"}).status().text; }
std::string calls() { return give_up_calls().status().text; }

std::string start(const char *call, int error, const char *of) {
    SpawnRequest request;
    request.program = "/bin/true";
    request.arguments = {"true"};
    const Refusing refused(call, error, of);
    const Result<pid_t> pid = spawn(request);
    CHECK(dcs_refused() > 0);
    if (pid) ::waitpid(*pid, nullptr, 0);
    return pid.status().text;
}

}  // namespace

TEST_CASE("a daemon that may not give up its rights") {
    if (::geteuid() == 0)  // no other process takes from that set
        CHECK(told("prctl", EPERM, PR_CAPBSET_DROP, 0, capabilities) ==
              about(giving_up + "a capability bounding set" + not_permitted));
    CHECK(told("prctl", EPERM, PR_CAP_AMBIENT, 0, capabilities) == giving_up + "ambient capabilities" + not_permitted);
    CHECK(told("syscall", EPERM, SYS_capget, 0, capabilities) == giving_up + "capabilities" + not_permitted);
    CHECK(told("syscall", EPERM, SYS_capset, 0, capabilities) == giving_up + "capabilities" + not_permitted);
    CHECK(told("prctl", EPERM, PR_SET_NO_NEW_PRIVS, 0, capabilities) == giving_up + "new privileges" + not_permitted);
    CHECK(told("prctl", EPERM, PR_SET_DUMPABLE, 0, capabilities).empty());
    const bool landlock = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) >= 2;
    if (landlock) {  // without, there is nothing that could be refused
        // The first call asks for the version.
        CHECK(told("syscall", EPERM, SYS_landlock_create_ruleset, 1, files) == giving_up + "files" + not_permitted);
        CHECK(told("syscall", EPERM, SYS_landlock_add_rule, 0, files) ==
              about("cannot restrict file access /tmp" + not_permitted));
        CHECK(told("syscall", EPERM, SYS_landlock_restrict_self, 0, [] {
                  (void)::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                  return files();
              }) == giving_up + "files" + not_permitted);
    }
    // The first call asks whether there are filters at all.
    CHECK(told("syscall", EPERM, SYS_seccomp, 1, calls) == giving_up + "system calls" + not_permitted);
}

TEST_CASE("programs that cannot be started") {
    const std::string number = std::to_string(F_DUPFD_CLOEXEC);
    CHECK(start("posix_spawnp", EAGAIN, "") == about("/bin/true cannot temporarily unavailable"));
    CHECK(start("open", EMFILE, "/dev/null") == about("/bin/true cannot many open files"));
    CHECK(start("fcntl", EMFILE, number.c_str()) == about("/bin/true cannot many open files"));
}

TEST_CASE("signals that cannot be blocked or received") {
    {
        const Refusing mask("pthread_sigmask", EINVAL);
        CHECK(Signals::open().status().text == "cannot block signals: Invalid argument");
    }
    sigset_t before;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
    const auto pipes = std::signal(SIGPIPE, SIG_DFL), files = std::signal(SIGXFSZ, SIG_DFL);
    {
        const Refusing descriptor("signalfd", EMFILE);
        CHECK(Signals::open().status().text == about("cannot receive many open files"));
    }
    std::signal(SIGPIPE, pipes);
    CHECK(std::signal(SIGXFSZ, files) == SIG_IGN);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("a group that cannot be looked up, a service manager that cannot be told") {
    {
        const Refusing group("getgrnam_r", EIO);
        CHECK(group_number("dcs").status().text == about("look group dcs Input/output"));
    }
    ::setenv("NOTIFY_SOCKET", "@dcs-refused", 1);
    {
        const Refusing socket("socket", EMFILE);
        CHECK(ServiceManager::from_environment().status().text == about("cannot service many open files"));
    }
}

TEST_CASE("a side process that cannot be started, or asked") {
    const SideProcess::Words words{"the test's helper", "the test"};
    const auto run = [](int socket) {
        const Status settled = settle_side_process(socket, "dcs_helper");
        serve_side_process(settled, socket, 30, [](std::string_view, int *) { return SideAnswer(); });
    };
    {
        const Refusing pair("socketpair", EMFILE);
        CHECK(SideProcess::start(words, 1, run).status().text == about("socket many open files"));
    }
    {
        const Refusing process("fork", EAGAIN);
        CHECK(SideProcess::start(words, 1, run).status().text == about("cannot started temporarily unavailable"));
    }
    int fd = -1;
    {
        const auto helper = SideProcess::start(words, 1, run);
        const Refusing silent("recvmsg", EAGAIN);
        CHECK((*helper)->ask("x", &fd).status().text == about("test's not restarted"));
        CHECK((*helper)->how_it_ended() == "does not answer");
    }
    {
        const auto helper = SideProcess::start(words, 1, run);
        const Refusing gone("send", EPIPE);
        CHECK((*helper)->ask("x", &fd).status().text == about("test's helper gone restarted"));
    }
    int said[2];
    REQUIRE(::pipe(said) == 0);
    const pid_t pid = ::fork();
    if (pid == 0) {  // of all that is open it keeps a socket and standard error
        int socket = ::dup(0);
        dcs_refuse("dup2:=0=:EIO");
        ::syscall(SYS_dup3, said[1], STDERR_FILENO, 0);
        const Status s = settle_side_process(socket, "dcs_helper");
        ::_exit(::write(STDERR_FILENO, s.text.data(), s.text.size()) > 0 ? 0 : 1);
    }
    ::close(said[1]);
    char text[100] = "";
    CHECK(::read(said[0], text, sizeof text - 1) > 0);
    ::close(said[0]);
    CHECK(std::string(text) == "dcs_helper has no descriptors");
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {}
}
