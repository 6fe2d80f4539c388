#include "process/table.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <set>

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/files.h"
#include "base/require.h"
#include "base/text.h"

namespace dcs {
namespace {

constexpr std::int64_t kernel_thread_flag = 0x00200000;  // PF_KTHREAD
constexpr std::int64_t exiting_flag = 0x00000004;        // PF_EXITING
constexpr std::size_t list_max = 1u << 20;
constexpr int exec_quick_tries = 10, exec_tries = 60;  // about 5 ms; a program from a slow file system takes longer
constexpr std::size_t environment_max = 4u << 20;      // more than execve takes by default
// Reads up to `size` bytes of a file of /proc; -1 if it cannot be opened or read. `line`: it ends with its only line
// feed, or at least its end is not needed.
ssize_t read_proc(const char *path, char *buffer, std::size_t size, bool line = false) noexcept {
    const Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
    if (!fd) return -1;
    std::size_t length = 0;
    while (length < size) {
        const ssize_t n = ::read(fd.get(), buffer + length, size - length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        length += static_cast<std::size_t>(n);
        if (line && buffer[length - 1] == '\n') break;
    }
    return static_cast<ssize_t>(length);
}
bool next_number(std::string_view &rest, std::int64_t &value) noexcept {
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error == std::errc::result_out_of_range) value = INT64_MAX;  // unsigned addresses, which are not used here
    else if (error != std::errc{}) return false;
    rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
    return true;
}
// Whether a process whose environment was read as empty has none. A zombie and a kernel thread have no memory.
// During execve(2) there is memory, but no address of an environment in it yet.
bool has_no_environment(pid_t pid) noexcept {
    constexpr int memory_size = 23, environment_start = 50, environment_end = 51;  // by the numbers of proc(5)
    char path[64], buffer[1024];
    std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
    const ssize_t n = read_proc(path, buffer, sizeof buffer);
    const std::string_view line(buffer, n > 0 ? static_cast<std::size_t>(n) : 0);
    const std::size_t close = line.rfind(')');
    if (close == std::string_view::npos || close + 4 >= line.size()) return true;
    std::string_view rest = line.substr(close + 4);
    std::int64_t field[environment_end + 1] = {};
    for (int i = 4; i <= environment_end; ++i)
        if (!next_number(rest, field[i])) return true;
    if (field[memory_size] == 0) return true;
    return field[environment_end] != 0 && field[environment_start] == field[environment_end];
}

constexpr int stop_rounds = 40;

}  // namespace

bool parse_stat(std::string_view line, ProcessStat &stat) noexcept {
    std::int64_t pid = 0;
    std::string_view head = line;
    if (!next_number(head, pid)) return false;
    const std::size_t close = line.rfind(')');  // the command's name may contain any character
    if (close == std::string_view::npos || close + 2 >= line.size()) return false;
    std::string_view rest = line.substr(close + 2);
    stat.pid = static_cast<pid_t>(pid);
    stat.state = rest.front();
    rest.remove_prefix(1);
    std::int64_t field[25] = {};  // by the numbers of proc(5); 4 is the parent
    for (int i = 4; i <= 24; ++i)
        if (!next_number(rest, field[i])) return false;
    stat.parent = static_cast<pid_t>(field[4]);
    stat.group = static_cast<pid_t>(field[5]);
    stat.session = static_cast<pid_t>(field[6]);
    stat.of_kernel = (field[9] & kernel_thread_flag) != 0;
    stat.exiting = (field[9] & exiting_flag) != 0;
    // In unsigned arithmetic, because the line may contain any numbers.
    const auto sum = [&](int a, int b) {
        return static_cast<std::uint64_t>(field[a]) + static_cast<std::uint64_t>(field[b]);
    };
    stat.minor_faults = sum(10, 11);
    stat.major_faults = sum(12, 13);
    stat.user_ticks = sum(14, 16);
    stat.system_ticks = sum(15, 17);
    stat.threads = static_cast<std::uint64_t>(field[20]);
    stat.start_time = static_cast<std::uint64_t>(field[22]);
    stat.resident_pages = static_cast<std::uint64_t>(field[24]);
    return true;
}

bool read_stat(pid_t pid, ProcessStat &stat) noexcept {
    char path[64], buffer[1024];
    std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
    const ssize_t n = read_proc(path, buffer, sizeof buffer, true);
    return n > 0 && parse_stat(std::string_view(buffer, static_cast<std::size_t>(n)), stat) && stat.pid == pid;
}

bool is_stopped(pid_t pid) {
    ProcessStat stat;
    return pid > 0 && read_stat(pid, stat) && (stat.state == 'T' || stat.state == 't');
}

std::optional<uid_t> only_uid(pid_t pid) {
    char path[64], buffer[4096];
    std::snprintf(path, sizeof path, "/proc/%d/status", static_cast<int>(pid));
    errno = 0;
    const ssize_t n = read_proc(path, buffer, sizeof buffer);
    const std::string_view text(buffer, n > 0 ? static_cast<std::size_t>(n) : 0);
    const std::size_t line = text.find("\nUid:");  // the name before it has no line feed: the kernel escapes it
    if (line == std::string_view::npos) return {};
    std::string_view rest = text.substr(line + 5);
    std::optional<uid_t> uid;
    for (int i = 0; i < 4; ++i) {
        std::int64_t value = -1;
        while (!rest.empty() && rest.front() == '\t') rest.remove_prefix(1);
        if (!next_number(rest, value) || (uid && value != static_cast<std::int64_t>(*uid))) return {};
        uid = static_cast<uid_t>(value);
    }
    return uid;
}

RunsAs runs_as(pid_t pid, uid_t uid) {
    errno = 0;
    const auto own = only_uid(pid);
    if (!own) return out_of_descriptors(errno) ? RunsAs::unclear : RunsAs::no;
    return *own == uid ? RunsAs::yes : RunsAs::no;
}

std::string boot_id() {
    char buffer[64];
    const ssize_t n = read_proc("/proc/sys/kernel/random/boot_id", buffer, sizeof buffer);
    std::string text(buffer, n > 0 ? static_cast<std::size_t>(n) : 0);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

bool out_of_descriptors(int error) noexcept { return error == EMFILE || error == ENFILE || error == ENOMEM; }

std::vector<ProcessStat> all_processes(int *missed) {
    std::vector<ProcessStat> found;
    errno = 0;
    const std::vector<int> pids = numbers_in("/proc");
    int error = pids.empty() ? errno : 0;
    for (const int pid : pids) {
        ProcessStat stat;
        errno = 0;
        if (pid > 0 && read_stat(pid, stat)) found.push_back(stat);
        else if (out_of_descriptors(errno)) error = errno;
    }
    if (missed != nullptr) *missed = error;
    return found;
}

std::vector<int> numbers_in(const std::string &directory) {
    std::vector<int> numbers;
    DIR *dir = ::opendir(directory.c_str());
    while (const dirent *entry = dir != nullptr ? ::readdir(dir) : nullptr) {
        int number = 0;
        if (read_number(entry->d_name, number)) numbers.push_back(number);
    }
    if (dir != nullptr) ::closedir(dir);
    return numbers;
}

std::vector<pid_t> pids_in(const std::string &path) {
    const std::string text = kernel_text(path, list_max);
    std::vector<pid_t> pids;
    for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
        pid_t pid = 0;
        const auto [stop, error] = std::from_chars(at, end, pid);
        if (error == std::errc{} && pid > 0) pids.push_back(pid);
        at = stop + 1;
    }
    return pids;
}

std::string kernel_text(const std::string &path, std::size_t max) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string text;
    if (!fd || !read_to_end(fd.get(), max, text)) return {};
    text.resize(std::min(text.size(), max));
    return text;
}

std::string command_of(pid_t pid) {
    constexpr std::size_t command_max = 200;
    std::string words = kernel_text("/proc/" + std::to_string(pid) + "/cmdline", command_max);
    while (!words.empty() && words.back() == '\0') words.pop_back();
    for (char &c : words)
        if (static_cast<unsigned char>(c) < ' ') c = ' ';
    return words;
}

std::string environment_of(pid_t pid) {
    const std::string path = "/proc/" + std::to_string(pid) + "/environ";
    for (int tries = 0;; ++tries) {
        const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        std::string text;
        if (!fd || !read_to_end(fd.get(), environment_max, text)) return {};
        text.resize(std::min(text.size(), environment_max));
        if (!text.empty() || tries == exec_tries || has_no_environment(pid)) return text;
        const timespec pause = {0, 100'000};
        if (tries < exec_quick_tries) ::sched_yield();
        else ::nanosleep(&pause, nullptr);
    }
}

bool has_variable(const std::string &environment, const std::string &name_and_value) {
    for (std::size_t at = 0; at < environment.size();) {
        std::size_t end = environment.find('\0', at);
        if (end == std::string::npos) end = environment.size();
        if (environment.compare(at, end - at, name_and_value) == 0) return true;
        at = end + 1;
    }
    return false;
}

bool may_be_signalled(const ProcessStat &p) { return p.pid > 1 && p.pid != ::getpid() && !p.of_kernel; }

std::vector<pid_t> own_children() {
    static const bool listed = ::access("/proc/thread-self/children", R_OK) == 0;  // else the kernel lacks the list
    if (listed) return pids_in("/proc/self/task/" + std::to_string(::getpid()) + "/children");
    std::vector<pid_t> pids;
    const pid_t self = ::getpid();
    for (const ProcessStat &p : all_processes())
        if (p.parent == self) pids.push_back(p.pid);
    return pids;
}

void signal_exactly(const ProcessStat &process, int number, const std::function<bool()> &allowed) {
    DCS_REQUIRE(process.pid > 1, "pids 0 and 1 are never signalled");
    const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
    const bool no_pidfds = !pidfd && errno == ENOSYS;
    ProcessStat now;
    if (!read_stat(process.pid, now) || now.start_time != process.start_time || (allowed && !allowed())) return;
    if (pidfd) ::syscall(SYS_pidfd_send_signal, pidfd.get(), number, nullptr, 0);
    else if (no_pidfds) ::kill(process.pid, number);
}

Carries carries(pid_t pid, const std::string &mark) {
    const std::string environment = environment_of(pid);
    if (environment.empty()) return Carries::unclear;
    return has_variable(environment, mark) ? Carries::yes : Carries::no;
}

ProcessTable::ProcessTable() {
    for (const ProcessStat &p : all_processes(&missed_))
        if (p.state != 'Z' && p.state != 'X') all_.push_back(p);
    for (std::size_t i = 0; i < all_.size(); ++i) {
        by_pid_.emplace(all_[i].pid, i);
        children_.emplace(all_[i].parent, i);
    }
}

const ProcessStat *ProcessTable::find(pid_t pid) const {
    const auto found = by_pid_.find(pid);
    return found == by_pid_.end() ? nullptr : &all_[found->second];
}

std::vector<ProcessStat> ProcessTable::family(const std::vector<pid_t> &start, pid_t session) const {
    std::vector<ProcessStat> found;
    std::set<pid_t> known;
    const auto add = [&](const ProcessStat &p) {
        if (may_be_signalled(p) && known.insert(p.pid).second) found.push_back(p);
    };
    for (const pid_t pid : start)
        if (const ProcessStat *p = find(pid)) add(*p);
    for (const ProcessStat &p : all_)
        if (session > 1 && p.session == session) add(p);
    for (std::size_t i = 0; i < found.size(); ++i)
        for (auto [at, end] = children_.equal_range(found[i].pid); at != end; ++at) add(all_[at->second]);
    return found;
}

FoundProcesses strike(const std::function<FoundProcesses()> &look,
                      const std::function<void(const ProcessStat &, int)> &signal) {
    std::set<std::pair<pid_t, std::uint64_t>> stopped;
    FoundProcesses found;
    for (int round = 0; round < stop_rounds; ++round) {
        found = look();
        bool any = false;
        for (const ProcessStat &p : found.processes)
            if (stopped.insert({p.pid, p.start_time}).second) {
                signal(p, SIGSTOP);
                any = true;
            }
        if (!any) break;
    }
    for (const ProcessStat &p : found.processes) signal(p, SIGKILL);
    return found;
}

}  // namespace dcs
