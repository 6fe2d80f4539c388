#include "grainserver/launcher/process_tree.h"

#include <cerrno>
#include <charconv>
#include <csignal>

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/files/small_file.h"

namespace dcs::launcher {
namespace {
constexpr pid_t kernel_threads = 2;  // their parent; they have no environment
bool read_children_file(std::vector<pid_t> &pids) {
    const std::string path = "/proc/self/task/" + std::to_string(::getpid()) + "/children";
    const files::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return false;
    std::string text;
    char buffer[4096];
    for (;;) {
        const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        if (n == 0) break;
        text.append(buffer, static_cast<std::size_t>(n));
    }
    const char *at = text.data(), *const end = at + text.size();
    while (at < end) {
        pid_t pid = 0;
        const auto [stop, error] = std::from_chars(at, end, pid);
        if (error != std::errc{}) break;
        pids.push_back(pid);
        at = stop + 1;
    }
    return true;
}

constexpr Duration exec_patience = milliseconds(200);

Carries member(const files::ProcessStat &p, pid_t leader, bool leader_lives, const std::string &mark) {
    if (p.state == 'Z' || p.state == 'X' || p.pid == ::getpid()) return Carries::no;
    if (p.pid == kernel_threads || p.parent == kernel_threads) return Carries::no;
    if (leader_lives && (p.pid == leader || p.session == leader)) return Carries::yes;
    return carries(p.pid, mark);
}
}  // namespace

std::vector<pid_t> own_children() {
    std::vector<pid_t> pids;
    if (read_children_file(pids)) return pids;
    pids.clear();
    const pid_t self = ::getpid();
    for (const files::ProcessStat &p : files::all_processes())
        if (p.parent == self) pids.push_back(p.pid);
    return pids;
}

void kill_exactly(const files::ProcessStat &process) {
    const files::Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
    const bool no_pidfds = !pidfd && errno == ENOSYS;
    files::ProcessStat now;
    if (!files::read_stat(process.pid, now) || now.start_time != process.start_time) return;
    if (pidfd) ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
    else if (no_pidfds) ::kill(process.pid, SIGKILL);
}

std::string cookie(const std::string &grain_directory) {
    return "DCS_GRAIN_DIR=" + grain_directory + "/" + files::room_name;
}

Carries carries(pid_t pid, const std::string &mark) {
    const std::string environment = files::environment_of(pid);
    if (environment.empty()) return Carries::unclear;
    return files::has_variable(environment, mark) ? Carries::yes : Carries::no;
}

bool kill_foreign_tree(pid_t pid, std::uint64_t start_time, const std::string &grain_directory, int seconds) {
    const std::string mark = cookie(grain_directory);
    const Instant deadline = boot_clock() + dcs::seconds(seconds), clear_by = boot_clock() + exec_patience;
    for (;;) {
        files::ProcessStat leader;
        const bool lives = files::read_stat(pid, leader) && leader.start_time == start_time;
        bool any = false, unclear = false;
        for (const files::ProcessStat &p : files::all_processes()) {
            const Carries answer = member(p, pid, lives, mark);
            if (answer == Carries::yes) kill_exactly(p);
            any = any || answer == Carries::yes;
            unclear = unclear || (answer == Carries::unclear && p.start_time >= start_time);
        }
        if (!any && (!unclear || boot_clock() >= clear_by)) return true;
        if (boot_clock() >= deadline) return false;
        const timespec pause{0, 10'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

}  // namespace dcs::launcher
