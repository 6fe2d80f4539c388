#include "start_daemon.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/text.h"
#include "commands/dcs/frame/ending_signals.h"
#include "stop_daemons.h"
#include "commands/dcs/frame/table.h"
#include "locks/files/lock_search.h"
#include "process/spawn.h"
#include "process/table.h"

namespace dcs::commands {
namespace {

constexpr int shown_lines = 12;
constexpr int usual_start_s = 20;             // of a daemon
constexpr int end_patience_ms = 5000;         // of a child that is asked to end
constexpr int look_ms = 200;                  // for a signal that ends this process
constexpr std::size_t most_said = 16u << 20;  // by a program that is run to its end
constexpr std::size_t log_read = 16384;       // as much of a log's end as is looked at

long long size_of(const std::string &path) {
    struct stat st = {};
    return ::stat(path.c_str(), &st) == 0 ? static_cast<long long>(st.st_size) : 0;
}

// What was appended to the log since it was `from` bytes long.
std::string log_since(const std::string &path, long long from) {
    Fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!file) return "";
    const long long size = size_of(path);
    if (size - from > static_cast<long long>(log_read)) from = size - static_cast<long long>(log_read);
    std::string text(log_read, '\0');
    const ssize_t n = ::pread(file.get(), text.data(), text.size(), from);
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return text;
}

// Without what belongs to the caller alone.
std::vector<std::string> daemon_environment() {
    std::vector<std::string> entries = current_environment();
    std::erase_if(entries, [](const std::string &entry) {
        return entry.starts_with("DCS_AUTH_FD=") || entry.starts_with("DCS_GRAIN_");
    });
    return entries;
}

// False: the daemon has ended, or this process is to end. One that lives is waited for without limit: it may read a
// large state from a slow disk, and would have to begin again.
bool wait_ready(int fd, const std::string &who, const std::string &log) {
    const Instant late = boot_clock() + seconds(usual_start_s);
    std::string got;
    for (bool told = false; got.find("ready\n") == std::string::npos;) {
        if (is_asked_to_end()) return false;
        if (!told && boot_clock() > late) {
            std::fprintf(stderr, "dcs: %s is still starting; its log: %s\n", who.c_str(), log.c_str());
            told = true;
        }
        pollfd wanted = {fd, POLLIN, 0};
        if (::poll(&wanted, 1, look_ms) <= 0) continue;
        char buffer[64];
        const ssize_t n = ::read(fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        got.append(buffer, static_cast<std::size_t>(n));
    }
    return true;
}

// It is a child that only this process waits for, and not ignored (clean_start()), so there is an answer.
int status_of(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return status;
}

bool ends_within(pid_t child, int patience_s) {
    const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    pollfd end = {process.get(), POLLIN, 0};
    const Instant deadline = boot_clock() + seconds(patience_s);
    while (process) {
        const long long left_ms = (deadline - boot_clock()).ns / 1'000'000;
        if (left_ms <= 0 || is_asked_to_end()) return false;
        const int n = ::poll(&end, 1, static_cast<int>(std::min<long long>(left_ms, look_ms)));
        if (n > 0 || (n < 0 && errno != EINTR)) return n > 0;
    }
    return true;  // it is waited for without limit
}

std::string how_it_ended(int status) {
    if (WIFSIGNALED(status)) return std::string("it was ended by signal ") + std::to_string(WTERMSIG(status));
    return "it ended with exit code " + std::to_string(WEXITSTATUS(status));
}

constexpr int jobs_patience_s = 30;
constexpr std::uint64_t needed_room = 1u << 20, needed_files = 100;  // by the daemons of a pool, for their start

}  // namespace

std::string full_disk_text(std::string path) {
    const auto above = [&] {
        const std::string folder = path.substr(0, path.rfind('/'));
        return folder.empty() ? std::string("/") : folder;
    };
    struct statvfs disk = {};
    while (::statvfs(path.c_str(), &disk) != 0 && path != "/") path = above();
    const std::uint64_t room = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    const bool no_file = disk.f_files > 0 && disk.f_favail < needed_files;
    if (disk.f_blocks == 0 || (room >= needed_room && !no_file)) return "";  // 0: of /proc and the like
    struct stat here = {}, st = {};
    for (bool same = ::stat(path.c_str(), &here) == 0; same && path != "/";) {
        same = ::stat(above().c_str(), &st) == 0 && st.st_dev == here.st_dev;
        if (same) path = above();
    }
    std::string left = room < needed_room ? std::to_string(room >> 10) + " KiB" : "";
    if (no_file) left += (left.empty() ? "" : " and ") + std::to_string(disk.f_favail) + " inodes";
    return "the file system on " + path + " has only " + left + " left";
}

std::string last_lines(const std::string &text, int lines) {
    std::size_t from = text.size();
    if (from > 0 && text[from - 1] == '\n') --from;
    while (from > 0 && lines > 0) {
        if (text[from - 1] == '\n' && --lines == 0) break;
        --from;
    }
    return text.substr(from);
}

int end_child(pid_t child) {
    const Process process(child);  // the number cannot be reused before waitpid
    process.signal(SIGTERM);
    if (!process.gone(end_patience_ms)) process.signal(SIGKILL);
    return status_of(child);
}

Status start_daemon(const DaemonStart &start) {
    const std::string path = own_folder() + "/" + start.program;
    if (::access(path.c_str(), X_OK) != 0)
        return fail_errno(Code::not_found, "the program " + path + " cannot be started", errno);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(Code::io_error, "a pipe for " + start.program, errno);
    Fd read_end{ends[0]}, write_end{ends[1]};
    const std::string log = start.directory + "/log";
    const long long log_before = size_of(log);
    const Fd log_file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!log_file) return fail_errno(Code::io_error, path + " cannot be started", errno);
    SpawnRequest request{path, {path}, daemon_environment(), "/"};
    request.arguments.insert(request.arguments.end(), start.arguments.begin(), start.arguments.end());
    request.arguments.insert(request.arguments.end(), {"--ready-fd", "3"});
    request.out = request.err = log_file.get();
    request.inherit = {write_end.get()};
    request.new_session = true;
    const auto started = spawn(request);
    if (!started) return fail(Code::io_error, started.status().text);
    const pid_t child = *started;
    write_end = Fd();
    if (wait_ready(read_end.get(), start.program + " (pid " + std::to_string(child) + ")", log)) return Status::ok();
    const std::string why = how_it_ended(is_asked_to_end() ? end_child(child) : status_of(child));
    std::string said = last_lines(log_since(log, log_before), shown_lines);
    if (!said.empty() && said.back() == '\n') said.pop_back();
    return fail(Code::internal, why + (said.empty() ? "" : "; the end of its log:\n" + said));
}

namespace {

// An anonymous file from its beginning.
Fd file_with(const std::string &text) {
    Fd file{::memfd_create("dcs", MFD_CLOEXEC)};
    if (file && (!dcs::write_all(file.get(), text) || ::lseek(file.get(), 0, SEEK_SET) != 0)) file = Fd();
    return file;
}

std::string text_in(int fd) {
    std::string text;
    if (::lseek(fd, 0, SEEK_SET) == 0) (void)read_to_end(fd, most_said, text);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

}  // namespace

Result<Ran> run_program(const std::string &program, const std::vector<std::string> &arguments, const std::string &input,
                        int patience_s) {
    const Fd in = file_with(input), out = file_with(""), err = file_with("");
    if (!in || !out || !err) return fail_errno(Code::io_error, "files for " + program, errno);
    SpawnRequest request{program, {program}, current_environment(), "", in.get(), out.get(), err.get()};
    request.arguments.insert(request.arguments.end(), arguments.begin(), arguments.end());
    request.keeps_others = true;
    const auto started = spawn(request);
    if (!started) return started.status();
    const pid_t child = *started;
    if (patience_s > 0 && !ends_within(child, patience_s)) {
        ::kill(child, SIGKILL);
        (void)status_of(child);
        return fail(Code::refused, is_asked_to_end()
                                       ? program + " was ended, because this command was"
                                       : program + " did not end within " + std::to_string(patience_s) + " s");
    }
    const int status = status_of(child);
    return Ran{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text_in(out.get()),
               text_in(err.get())};
}

Result<Ran> run_to_end(const std::string &program, const std::vector<std::string> &arguments) {
    auto ran = run_program(own_folder() + "/" + program, arguments);
    if (!ran) return fail(Code::io_error, ran.status().text);  // a part of DCS that is missing is no wrong name
    if (!ran->errors.empty()) ran->output += (ran->output.empty() ? "" : "\n") + ran->errors;
    return ran;
}

Daemon job_keeper(const Pool &pool) {
    Daemon keeper{"job", "keeper", pool.path("jobs"), pool.path("jobs/keeper.lock")};
    keeper.up = locks::is_held(keeper.lock);
    return keeper;
}

// By their logs, which are their standard output.
std::vector<std::string> waiting_submits(const Pool &pool) {
    const std::string folder = pool.path("submit/");
    std::vector<std::string> found;
    for (const int pid : numbers_in("/proc")) {
        char log[4096];
        const ssize_t n = ::readlink(("/proc/" + std::to_string(pid) + "/fd/1").c_str(), log, sizeof log);
        const std::string_view path(log, n > 0 ? static_cast<std::size_t>(n) : 0);
        if (!path.starts_with(folder) || !path.ends_with(".log")) continue;
        found.push_back("process " + std::to_string(pid) + " of session " +
                        std::string(path.substr(folder.size(), path.size() - folder.size() - 4)));
    }
    return found;
}

void resume_jobs(const Pool &pool) {
    if (::access(pool.path("jobs/jobs.db").c_str(), F_OK) != 0) return;
    const std::string jobs = own_folder() + "/../libexec/dcs/jobs";
    ::setenv("DCS_DIR", pool.directory().c_str(), 1);
    const auto ran = run_program(jobs, {"resume"}, "", jobs_patience_s);
    if (ran && ran->exit_code == 0) return;
    std::fprintf(stderr, "dcs: held jobs wait until the next squeue or qstat: %s\n",
                 printable(ran ? last_lines(ran->errors, 1) : ran.status().text).c_str());
}

}  // namespace dcs::commands
