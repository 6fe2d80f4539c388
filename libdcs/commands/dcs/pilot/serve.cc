// dcs pilot serve: what a job of a pilot executes. Runs a grain server in a directory of its own on this node, passes
// the engine's signals on, and removes the directory.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/files.h"
#include "base/text.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/pool/start_daemon.h"
#include "commands/dcs/pool/stop_daemons.h"
#include "locks/files/lock_search.h"
#include "place.h"

namespace dcs::commands {
namespace {

constexpr std::time_t young_s = 600;  // of a directory whose server may not have locked it yet
constexpr int launcher_patience_s = 15, server_patience_s = 30;
constexpr std::time_t look_s = 2;
constexpr double usual_margin_s = 60, usual_server_idle_s = 300;

std::string place_on_node(const Call &call) {
    const char *temporary = std::getenv("TMPDIR");
    const std::string usual = temporary != nullptr && temporary[0] == '/' ? temporary : "/tmp";
    return absolute_path(call.arguments.value("base").value_or(usual));
}

std::string stem_of_ours() { return "dcs-pilot." + std::to_string(::geteuid()) + "."; }

// What killed jobs left on this node.
void sweep(const std::string &base) {
    const Fd parent(::open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto names =
        parent ? list_directory(parent.get()) : Result<std::vector<std::string>>(std::vector<std::string>{});
    if (!names) return;
    for (const std::string &name : *names) {
        struct stat st = {};
        if (!name.starts_with(stem_of_ours()) || ::lstat((base + "/" + name).c_str(), &st) != 0) continue;
        if (!S_ISDIR(st.st_mode) || st.st_uid != ::geteuid() || std::time(nullptr) - st.st_ctime < young_s) continue;
        const std::string directory = base + "/" + name;
        if (!locks::is_held(directory + "/lock") && !locks::is_held(directory + "/launcher.lock"))
            (void)remove_tree(parent.get(), name);
    }
}

// The time that this job has: the engine's own word, or else the limit that was asked for.
double time_left_s(double limit_s) {
    std::int64_t seconds = 0;
    if (const char *end = std::getenv("SLURM_JOB_END_TIME"); end != nullptr && read_number(end, seconds))
        return std::min(limit_s, static_cast<double>(seconds - std::time(nullptr)));
    if (const char *whole = std::getenv("PBS_WALLTIME"); whole != nullptr && read_number(whole, seconds))
        return std::min(limit_s, static_cast<double>(seconds));  // of Torque
    return limit_s;
}

// Root's server gives each user's grains an account of their own; in root's own pool they are root's.
std::string accounts_of_grains(const Call &call) {
    return call.arguments.value("run-as").value_or(::geteuid() == 0 ? "users" : "self");
}

// As many for each pid that a node can have, so that its pilots have none in common.
std::string own_uids() {
    constexpr std::uint32_t first = 2'100'000'000, count = 512, pids = 1u << 22;
    const std::uint32_t begin = first + static_cast<std::uint32_t>(::getpid()) % pids * count;
    return std::to_string(begin) + "-" + std::to_string(begin + count - 1);
}

std::vector<std::string> server_line(const Call &call, const std::string &directory) {
    const Arguments &said = call.arguments;
    const double limit_s = said.seconds("limit").value_or(0);
    const double after_s = std::max(1.0, time_left_s(limit_s) - said.seconds("margin").value_or(usual_margin_s));
    // The engine says which of this host's devices are the job's.
    const char *resources = ::getenv("CUDA_VISIBLE_DEVICES") != nullptr ? "auto" : "no-devices";
    const double idle_s = said.seconds("idle").value_or(usual_server_idle_s);
    const std::pair<const char *, std::string> options[] = {
        {"--name", said.words[0]},
        {"--dir", directory},
        {"--pki", said.value("pki").value_or("")},
        {"--scheduler", said.value("scheduler").value_or("")},
        {"--run-as", accounts_of_grains(call)},
        {"--anonymous-uids", own_uids()},
        {"--users", said.value("users").value_or("all")},
        {"--courtesy", "priority"},
        {"--resources", resources},
        {"--log-level", "info"},
        {"--leave-after", std::to_string(static_cast<long>(after_s))},
        {"--leave-idle", std::to_string(static_cast<long>(idle_s))}};
    std::vector<std::string> line = {own_folder() + "/dcs_grainserver"};
    for (const auto &[option, value] : options) line.insert(line.end(), {option, value});
    return line;
}

// It gets SIGTERM if this process dies, and so does this process if the engine's does (see below).
pid_t start_server(const std::vector<std::string> &line, const sigset_t &before) {
    std::vector<char *> argv = pointers_to(line);
    const pid_t parent = ::getpid(), child = ::fork();
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (::getppid() == parent) ::execv(argv[0], argv.data());
    ::_exit(127);
}

// Until the server has ended; its exit code.
int serve_until_end(pid_t server, const sigset_t &signals, const std::string &pki) {
    for (bool asked = false;;) {
        int status = 0;
        const timespec look = {look_s, 0};
        int number = ::sigtimedwait(&signals, nullptr, &look);
        if (number < 0 && !asked && job_is_asked_to_end(pki)) {
            asked = true;
            number = SIGTERM;
        }
        if (::waitpid(server, &status, WNOHANG) == server)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (number != SIGCHLD && number > 0) ::kill(server, SIGTERM);  // still ours: it was not waited for
    }
}

// What is left of this pilot on the node, as far as nothing has ended it yet.
void end_all(const std::string &directory) {
    const Daemon server{"grainserver", "grainserver", directory, directory + "/lock"};
    const Daemon launcher{"launcher", "launcher", directory, directory + "/launcher.lock"};
    (void)stop_daemons({server}, server_patience_s);
    (void)stop_daemons({launcher}, launcher_patience_s);
    if (const Status s = remove_tree(AT_FDCWD, directory); !s) std::fprintf(stderr, "dcs: %s\n", s.text.c_str());
}

// An engine may kill the session of a job, in which this process and the server are, but not the launcher and grains.
// A process in a session of its own then ends these. It lives until the returned end of a pipe is closed.
Result<Fd> leave_a_sweeper(const std::string &directory) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(Code::io_error, "pipe", errno);
    Fd ours(ends[1]), its(ends[0]);
    const pid_t child = ::fork();
    if (child < 0) return fail_errno(Code::io_error, "fork", errno);
    if (child > 0) return ours;
    ::setsid();
    ours = Fd();
    char byte = 0;
    while (::read(its.get(), &byte, 1) < 0 && errno == EINTR) {}
    if (::access(directory.c_str(), F_OK) == 0) end_all(directory);
    ::_exit(0);
}

// Grains under accounts of their own have to pass through it.
Result<std::string> make_on_node(const std::string &base, bool for_others) {
    std::string directory = base + "/" + stem_of_ours() + "XXXXXX";
    if (::mkdtemp(directory.data()) == nullptr || (for_others && ::chmod(directory.c_str(), 0711) != 0))
        return fail_errno(Code::io_error, "a directory in " + base, errno);
    return directory;
}

int pilot_serve(const Call &call) {
    for (const char *needed : {"scheduler", "pki", "limit"})
        if (!call.arguments.has(needed))
            return call.fail(usage_failure(std::string("dcs pilot serve: --") + needed + " is missing",
                                           "`dcs pilot serve --help` shows how it is used"));
    // Where the engine's own process is killed, nothing else says that the job is over.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigset_t signals, before;
    ::sigemptyset(&signals);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU, SIGCHLD})
        ::sigaddset(&signals, number);
    ::pthread_sigmask(SIG_BLOCK, &signals, &before);
    const std::string base = place_on_node(call);
    sweep(base);
    const auto directory = make_on_node(base, accounts_of_grains(call) == "users");
    if (!directory) return call.fail(failure_of("the grain server's directory", directory.status()));
    const auto sweeper = leave_a_sweeper(*directory);
    if (!sweeper) return call.fail(failure_of("", sweeper.status()));
    const pid_t server = start_server(server_line(call, *directory), before);
    if (server < 0) return call.fail(failure_of("", fail_errno(Code::io_error, "fork", errno)));
    const int exit = serve_until_end(server, signals, call.arguments.value("pki").value_or(""));
    end_all(*directory);
    return exit;
}

}  // namespace

extern const Verb pilot_serve_verb = {
    .noun = "pilot",
    .name = "serve",
    .words = "PILOT",
    .summary = "what the jobs of pilots execute",
    .about = R"(Runs the grain server of a pilot until its job ends. Jobs of `dcs pilot slurm`, `pbs` and `condor`
execute it; for another batch system, submit it yourself. SIGTERM makes it leave with last checkpoints.

Examples:
  dcs pilot serve pilot1 --scheduler pool.example:7001 --pki ~/.local/state/dcs/pilots/pilot1/pki --limit 4h
)",
    .options = {{"scheduler", 0, "HOST:PORT[,..]", some_text, "where the scheduler is", "", Given::always},
                {"pki", 0, "DIR", some_text, "key and certificate of the pilot, from `dcs host join`", "",
                 Given::always},
                {"limit", 0, "S", seconds_from(1), "time that the job has", "", Given::always},
                {"margin", 0, "S", seconds_from(1), "it leaves that long before the limit; default 60"},
                {"idle", 0, "S", seconds_from(1), "it leaves when no grain came for that long; default 5m"},
                {"base", 0, "DIR", some_text, "where its directory is made; default $TMPDIR, else /tmp"},
                {"run-as", 0, "WHO", one_of("users|self"),
                 "accounts of grains: users (default for root) gives each user's an account of their own, self is the\n"
                 "account of the job"},
                {"users", 0, "LOGIN,..", some_text, "only grains of these users run; default: all that it is given"}},
    .run = pilot_serve,
    .formats = false};

}  // namespace dcs::commands
