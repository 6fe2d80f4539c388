#include "grainserver/launcher/start_grain.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/files/process_identity.h"
#include "grainserver/files/room.h"
#include "grainserver/files/small_file.h"
#include "locks/slots.h"

namespace dcs::launcher {
namespace {
using files::Fd;

enum class Step : std::int32_t { streams, directory, pid_file, orphaned, exec, runner };
struct Failure { Step step; std::int32_t error; };

// Everything that the child needs, made before the fork: it shares our memory and may not allocate.
struct Plan {
    int grain = -1, room = -1, slot = -1, report = -1;
    const char *out = nullptr, *err = nullptr;  // names of its streams
    const char *directory = nullptr, *program = nullptr, *boot_id = nullptr;
    const char *runner = nullptr;  // executed in the program's place, which is among its arguments
    char *const *argv = nullptr;
    char *const *env = nullptr;
    pid_t launcher = 0;
    bool only_prove = false;
};

[[noreturn]] void give_up(const Plan &plan, Step step, int error) noexcept {
    const Failure failure{step, error};
    ssize_t n;
    do n = ::write(plan.report, &failure, sizeof failure);
    while (n < 0 && errno == EINTR);
    ::_exit(127);
}

// Before the exec, so that there is never a grain that runs and that nobody can find.
void write_pid_file(const Plan &plan) noexcept {
    files::ProcessStat self;
    char text[128];
    if (!files::read_stat(::getpid(), self)) give_up(plan, Step::pid_file, ESRCH);
    const std::size_t length = files::format_pid(text, sizeof text, self.pid, self.start_time, plan.boot_id);
    const int fd = ::openat(plan.grain, "pid.tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || length == 0) give_up(plan, Step::pid_file, errno);
    errno = ENOSPC;  // a short write
    if (::write(fd, text, length) != static_cast<ssize_t>(length)) give_up(plan, Step::pid_file, errno);
    ::close(fd);
    if (::renameat(plan.grain, "pid.tmp", plan.grain, files::pid_name) != 0) give_up(plan, Step::pid_file, errno);
}

// From linux/ioprio.h, which newer releases no longer let C++ include (a parameter named `class`).
constexpr int ioprio_who_process = 1, ioprio_class_idle = 3, ioprio_class_shift = 13;

// Courtesy and limits. What the kernel refuses here does not stop the grain.
void be_modest() noexcept {
    ::setpriority(PRIO_PROCESS, 0, 19);
    const sched_param none{};
    if (::sched_setscheduler(0, SCHED_IDLE, &none) != 0) ::sched_setscheduler(0, SCHED_BATCH, &none);
    ::syscall(SYS_ioprio_set, ioprio_who_process, 0, ioprio_class_idle << ioprio_class_shift);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (::write(fd, "500", 3) < 0) errno = 0;
        ::close(fd);
    }
}

// From here on an exec stops before the program's first instruction. If the launcher dies meanwhile, so does it:
// by this signal, and else by the SIGTRAP that the exec left it. Without ptrace a look must do.
void only_prove(const Plan &plan) noexcept {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (::getppid() == plan.launcher && ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0) return;
    if (::faccessat(AT_FDCWD, plan.program, X_OK, AT_EACCESS) != 0) give_up(plan, Step::exec, errno);
    ::_exit(0);
}

// What an exec of the program itself would find; its runner would run, and fail in the grain's name.
void see_program(const Plan &plan) noexcept {
    struct stat st{};
    if (::stat(plan.program, &st) != 0) give_up(plan, Step::exec, errno);
    if (!S_ISREG(st.st_mode)) give_up(plan, Step::exec, EACCES);
    if (::faccessat(AT_FDCWD, plan.program, X_OK, AT_EACCESS) != 0) give_up(plan, Step::exec, errno);
}

// With the grain's own rights, as others of its user may have been in its room before.
void open_streams(const Plan &plan) noexcept {
    const int in = ::openat(plan.room, files::input_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (in < 0 || ::fcntl(in, F_SETFL, 0) != 0 || ::dup2(in, 0) < 0) give_up(plan, Step::streams, errno);
    int to = 1;
    for (const char *name : {plan.out, plan.err}) {
        ::unlinkat(plan.room, name, 0);  // of a proof
        const int fd = ::openat(plan.room, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 || ::dup2(fd, to++) < 0) give_up(plan, Step::streams, errno);
    }
}

void enter_directory(const Plan &plan) noexcept {
    if (plan.directory != nullptr) {
        if (::chdir(plan.directory) != 0) give_up(plan, Step::directory, errno);
        return;
    }
    ::mkdirat(plan.room, files::work_name, 0700);
    const int work = ::openat(plan.room, files::work_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (work < 0 || ::fchdir(work) != 0) give_up(plan, Step::directory, errno);
}

[[noreturn]] void become_grain(const Plan &plan) noexcept {
    ::setsid();
    be_modest();
    if (!plan.only_prove) write_pid_file(plan);
    // If our launcher died before this line the next one has not looked yet, or has looked and not
    // seen us; then nobody would ever know us. If it dies after it, the pid file is there to be found.
    if (::getppid() != plan.launcher) give_up(plan, Step::orphaned, ECANCELED);
    open_streams(plan);
    enter_directory(plan);
    // The slot's descriptor stays open in the grain, so that the slot stays taken without us.
    const auto slot = static_cast<unsigned>(plan.slot);
    if (!plan.only_prove) ::syscall(SYS_close_range, 3u, slot - 1, 4u /* CLOSE_RANGE_CLOEXEC */);
    ::syscall(SYS_close_range, plan.only_prove ? 3u : slot + 1, ~0u, 4u);
    ::signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (plan.runner != nullptr) see_program(plan);
    if (plan.only_prove) only_prove(plan);
    ::execve(plan.runner != nullptr ? plan.runner : plan.program, plan.argv, plan.env);
    give_up(plan, plan.runner != nullptr ? Step::runner : Step::exec, errno);
}

// vfork: the launcher is suspended until the exec, its few pages are not copied. A function of its
// own, so that the child cannot disturb the frame of whoever goes on.
[[gnu::noinline]] pid_t fork_grain(const Plan &plan) {
    const pid_t pid = ::vfork();
    if (pid == 0) become_grain(plan);
    return pid;
}

StartOutcome failed(Code code, std::string text, bool again = false) {
    StartOutcome outcome;
    outcome.code = code;
    outcome.again = again;
    outcome.text = std::move(text);
    return outcome;
}

std::string exec_words(const std::string &program, int error) {
    struct stat st{};
    const bool there = ::stat(program.c_str(), &st) == 0;
    if (there && S_ISDIR(st.st_mode)) return program + " is a directory, not a program";
    if (error == ENOENT && there) return program + " is there, but the interpreter or loader that it names is not";
    if (error == EACCES && there) return program + " is not executable for this user";
    if (error == ENOEXEC) return program + " is neither a program of this kind of machine nor a script with a #! line";
    return "cannot start " + program + ": " + std::strerror(error);
}

// Trouble of the host now, as opposed to a program that cannot run here at all.
bool host_trouble(int error) {
    return error == ENOMEM || error == EAGAIN || error == EMFILE || error == ENFILE || error == EIO ||
           error == ENOSPC || error == EDQUOT || error == ETXTBSY;
}

StartOutcome told(const Failure &failure, const files::LaunchRecord &launch) {
    const std::string why = std::strerror(failure.error);
    const Code trouble = failure.error == ENOSPC || failure.error == EDQUOT ? Code::no_space : Code::io_error;
    const Code code = host_trouble(failure.error) ? trouble : Code::not_found;
    switch (failure.step) {
    case Step::exec: return failed(code, exec_words(launch.program, failure.error));
    case Step::runner:
        return failed(Code::io_error, "the runner of this host: " + exec_words(launch.runner[0], failure.error));
    case Step::directory:
        if (launch.directory.empty()) return failed(trouble, "working directory of the grain: " + why);
        return failed(code, "working directory " + launch.directory + ": " + why);
    case Step::streams: return failed(trouble, "standard streams of the grain: " + why);
    case Step::pid_file: return failed(trouble, "file pid of the grain: " + why);
    case Step::orphaned: break;
    }
    return failed(Code::io_error, "the launcher ended during the start");
}

std::vector<char *> pointers(const std::vector<std::string> &items) {
    std::vector<char *> list;
    for (const std::string &item : items) list.push_back(const_cast<char *>(item.c_str()));
    list.push_back(nullptr);
    return list;
}

// What is executed: the program, or the host's runner with the program's path and arguments behind its words.
std::vector<std::string> command(const files::LaunchRecord &launch) {
    if (launch.runner.empty()) return launch.argv;
    std::vector<std::string> words;
    for (const std::string &word : launch.runner) words.push_back(word == "{name}" ? launch.argv[0] : word);
    words.push_back(launch.program);
    words.insert(words.end(), launch.argv.begin() + 1, launch.argv.end());
    return words;
}

bool begins(const std::string &text, const char *start) { return text.rfind(start, 0) == 0; }

std::vector<std::string> environment(const files::LaunchRecord &launch, const std::string &directory) {
    std::vector<std::string> env;
    for (const std::string &item : launch.env)
        if (!begins(item, "DCS_GRAIN_DIR=") && !begins(item, "DCS_GRAIN_SEQUENCE=")) env.push_back(item);
    env.push_back("DCS_GRAIN_DIR=" + directory);
    env.push_back("DCS_GRAIN_SEQUENCE=" + std::to_string(launch.next_seq));
    return env;
}

// Far away from the numbers that programs use and close by habit.
Fd high_copy(int fd) {
    for (const int lowest : {900, 200, 60, 10}) {
        const int copy = ::fcntl(fd, F_DUPFD, lowest);
        if (copy >= 0) return Fd(copy);
    }
    return {};
}

// Waits for the exec (end of file) or for the failure before it.
bool read_failure(int pipe, Failure &failure) {
    ssize_t n;
    do n = ::read(pipe, &failure, sizeof failure);
    while (n < 0 && errno == EINTR);
    return n == static_cast<ssize_t>(sizeof failure);
}

void wait_for_end(pid_t pid) {
    int status = 0;
    for (;;) {
        const pid_t ended = ::waitpid(pid, &status, 0);  // also tells of a stop at the exec
        if (ended < 0 ? errno != EINTR : WIFEXITED(status) || WIFSIGNALED(status)) return;
    }
}

// Without a slot: only to prove that it could run.
StartOutcome run(const Place &place, const std::string &dir, const Fd &grain, const files::LaunchRecord &launch,
                 std::optional<locks::KernelLock> slot) {
    const Result<files::Room> room = files::open_room(grain.get());
    if (!room) return failed(Code::io_error, room.status().text);
    const std::string out = files::out_name(launch.next_seq), err = files::err_name(launch.next_seq);
    const Fd slot_copy = slot ? high_copy(slot->fd()) : Fd();
    int ends[2];
    if (bool{slot} != bool{slot_copy} || ::pipe2(ends, O_CLOEXEC) != 0)
        return failed(Code::io_error, std::string("descriptors for the grain: ") + std::strerror(errno));
    const Fd report_in(ends[0]);
    Fd report_out(ends[1]);
    const std::vector<std::string> env = environment(launch, place.path + "/" + dir + "/" + files::room_name);
    const std::vector<std::string> words = command(launch);
    const std::vector<char *> argv_list = pointers(words), env_list = pointers(env);
    Plan plan;
    plan.grain = grain.get();
    plan.room = room->fd.get();
    plan.out = out.c_str();
    plan.err = err.c_str();
    plan.slot = slot_copy.get();
    plan.report = report_out.get();
    plan.directory = launch.directory.empty() ? nullptr : launch.directory.c_str();
    plan.program = launch.program.c_str();
    if (!launch.runner.empty()) plan.runner = launch.runner[0].c_str();
    plan.boot_id = place.boot_id.c_str();
    plan.argv = argv_list.data();
    plan.env = env_list.data();
    plan.launcher = ::getpid();
    plan.only_prove = !slot;
    failpoint("launcher.start.before_fork");
    const pid_t pid = fork_grain(plan);
    failpoint("launcher.start.after_fork");
    if (pid < 0) return failed(Code::io_error, std::string("no process for the grain: ") + std::strerror(errno));
    report_out = Fd();
    Failure failure{};
    if (read_failure(report_in.get(), failure)) {
        wait_for_end(pid);
        if (slot) files::remove_file(grain.get(), files::pid_name);
        if (slot) files::remove_file(grain.get(), "pid.tmp");
        return told(failure, launch);
    }
    StartOutcome outcome;
    outcome.kind = StartOutcome::Kind::started;
    if (!slot) {
        failpoint("launcher.prove.before_kill");
        ::kill(pid, SIGKILL);
        wait_for_end(pid);
        return outcome;
    }
    failpoint("launcher.start.after_exec");
    outcome.pid = pid;
    outcome.slot = std::move(*slot);
    return outcome;
}

struct Ready {
    Fd grain;
    files::LaunchRecord launch;
};
// What is to be run. Otherwise `outcome` says why not, or that it is running or ended.
std::optional<Ready> find(const Place &place, const std::string &dir, StartOutcome &outcome) {
    Result<Fd> grain = files::open_directory(place.grains, dir);
    if (!grain) {
        outcome = failed(Code::io_error, "directory of the grain: " + grain.status().text);
        return {};
    }
    if (files::exists(grain->get(), files::pid_name) || files::exists(grain->get(), files::exit_name)) {
        outcome.kind = StartOutcome::Kind::have_it;
        return {};
    }
    const Result<std::string> bytes = files::read_file(grain->get(), files::launch_name, files::record_bytes_max);
    Result<files::LaunchRecord> launch =
        bytes ? files::unpack_launch(*bytes) : Result<files::LaunchRecord>(bytes.status());
    if (!launch) outcome = failed(Code::io_error, launch.status().text);
    else if (launch->argv.empty() || launch->program.empty() || launch->program[0] != '/')
        outcome = failed(Code::not_found, "the grain names no program");
    else return Ready{std::move(*grain), std::move(*launch)};
    return {};
}
}  // namespace

StartOutcome prove_grain(const Place &place, const std::string &dir) {
    StartOutcome outcome;
    const std::optional<Ready> ready = find(place, dir, outcome);
    return ready ? run(place, dir, ready->grain, ready->launch, std::nullopt) : std::move(outcome);
}

StartOutcome start_grain(const Place &place, const std::string &dir, int slot_limit) {
    StartOutcome outcome;
    const std::optional<Ready> ready = find(place, dir, outcome);
    if (!ready) return outcome;
    int number = 0;
    const std::string note = std::to_string(::getpid()) + " grain " + dir + "\n";
    Result<locks::KernelLock> slot = locks::take_slot(place.slots, slot_limit, note, &number);
    if (!slot) return failed(slot.status().code, slot.status().text, slot.status().code == Code::limit);
    return run(place, dir, ready->grain, ready->launch, std::move(*slot));
}

bool lower_session_priority(pid_t pid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/autogroup", static_cast<int>(pid));
    const Fd fd(::open(path, O_WRONLY | O_CLOEXEC));
    if (!fd) return true;  // no such thing on this kernel, or no such process any more
    return ::write(fd.get(), "19", 2) == 2 || errno != EAGAIN;
}

}  // namespace dcs::launcher
