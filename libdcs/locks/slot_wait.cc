#include "locks/slot_wait.h"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/planted.h"
#include "process/table.h"

namespace dcs::locks {
namespace {

// A process may have few descriptors (1,024 is usual), a limit thousands of holders. Holders beyond the first ones are
// watched by child processes, a group each.
constexpr std::size_t watched_here = 64, group_size = 256;

std::string bell_path(const Place &head) { return head.path + ".bell"; }

// O_RDWR: no SIGPIPE, no wait for the other end, and a ring is kept while any process has the FIFO open.
Fd open_bell(const std::string &path) {
    Fd fd = above_standard(Fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)));
    struct stat st = {};
    if (!fd || (::fstat(fd.get(), &st) == 0 && S_ISFIFO(st.st_mode))) return fd;
    errno = EEXIST;
    return Fd();
}

// Forks a child without an exit signal, which the program's own wait calls do not see. It may do only what is allowed
// after vfork, and ends with its parent.
template <class Work> pid_t watcher(int *pidfd, Work work) {
    const pid_t parent = ::getpid();
    const long pid = ::syscall(SYS_clone, CLONE_PIDFD, nullptr, pidfd, nullptr, nullptr);
    if (pid != 0) return static_cast<pid_t>(pid);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (::getppid() == parent) work();
    ::_exit(0);
}

void close_all_but(int fd) {
    const auto kept = static_cast<unsigned>(fd);
    if (kept > 0) ::syscall(SYS_close_range, 0u, kept - 1, 0u);
    ::syscall(SYS_close_range, kept + 1, ~0u, 0u);
}

struct Group {
    ProcessIdentity members[group_size];
    std::size_t count = 0;
};

// Returns when a process of the group has ended.
void watch_group(const Group &group) {
    ::syscall(SYS_close_range, 0u, ~0u, 0u);  // inherited descriptors would keep other locks
    pollfd polls[group_size];
    for (std::size_t i = 0; i < group.count; ++i) {
        const ProcessIdentity &p = group.members[i];
        const int fd = static_cast<int>(::syscall(SYS_pidfd_open, p.pid, 0));
        struct stat st = {};
        ProcessStat now;
        if (fd < 0 || !read_stat(p.pid, now) || now.start_time != p.start_ticks) return;
        if (p.pidfs_inode != 0 && (::fstat(fd, &st) != 0 || st.st_ino != p.pidfs_inode)) return;
        polls[i] = {fd, POLLIN, 0};
    }
    while (::poll(polls, group.count, -1) < 0 && errno == EINTR) {}
}

class Watch {
public:
    Watch(const Place &head, const Bell &bell) : head_(head) { polls_.push_back({bell.fd(), POLLIN, 0}); }
    Watch(const Watch &) = delete;
    ~Watch();
    // False: the slot is free by now.
    bool add(const SlotHolder &holder);
    Status complete();
    Result<bool> wait(const Deadline &until);

private:
    bool add(const ProcessIdentity &process);
    bool watch_byte(int number);
    bool watch_groups();
    bool follow(pid_t child, int pidfd);

    const Place &head_;
    std::vector<pollfd> polls_;
    std::vector<ProcessHandle> handles_;
    std::vector<ProcessIdentity> others_;
    std::vector<pid_t> children_;
    std::vector<int> pidfds_;
    bool failed_ = false;
};

Watch::~Watch() {
    for (const pid_t pid : children_) ::kill(pid, SIGKILL);
    for (const pid_t pid : children_)
        while (::waitpid(pid, nullptr, __WALL) < 0 && errno == EINTR) {}
    for (const int fd : pidfds_) ::close(fd);
}

bool Watch::add(const ProcessIdentity &process) {
    if (process.pid <= 0) return false;
    Result<ProcessHandle> handle = ProcessHandle::open(process);
    if (!handle) return false;
    if (handles_.size() >= watched_here) {
        others_.push_back(process);
        return true;
    }
    polls_.push_back({handle->fd(), POLLIN, 0});
    handles_.push_back(std::move(*handle));
    return true;
}

bool Watch::add(const SlotHolder &holder) {
    if (planted("locks.slots_no_watch")) return true;
    if (holder.left) return watch_byte(holder.number);
    const bool process = add(holder.owner.process), supervisor = add(holder.owner.supervisor);
    return process || supervisor || watch_byte(holder.number);
}

// False: no child was started.
bool Watch::follow(pid_t child, int pidfd) {
    if (child < 0) return false;
    children_.push_back(child);
    pidfds_.push_back(pidfd);
    polls_.push_back({pidfd, POLLIN, 0});
    return true;
}

// The holder is not known (a child that inherited the descriptor, or a process out of sight): a child waits for the
// byte itself.
bool Watch::watch_byte(int number) {
    Result<LockFile> file = LockFile::look(shard_place(head_, number / slots_per_file));
    const std::int64_t byte = slot_byte + number % slots_per_file;
    if (!file || file->first_locked(byte, 1) < 0) return false;
    const int fd = file->fd();
    int pidfd = -1;
    const pid_t pid = watcher(&pidfd, [fd, byte] {
        close_all_but(fd);
        struct flock range = {};
        range.l_type = F_RDLCK;
        range.l_whence = SEEK_SET;
        range.l_start = byte;
        range.l_len = 1;
        while (::fcntl(fd, F_OFD_SETLKW, &range) != 0 && errno == EINTR) {}
    });
    failed_ = !follow(pid, pidfd) || failed_;
    return true;
}

bool Watch::watch_groups() {
    Group group;
    for (std::size_t i = 0; i < others_.size(); ++i) {
        group.members[group.count++] = others_[i];
        if (group.count < group_size && i + 1 < others_.size()) continue;
        int pidfd = -1;
        const pid_t pid = watcher(&pidfd, [&group] { watch_group(group); });
        if (!follow(pid, pidfd)) return false;
        group.count = 0;
    }
    return true;
}

Status Watch::complete() {
    if (!failed_ && watch_groups()) return Status::ok();
    return fail(Code::io_error, "cannot start a process that waits for a slot of " + head_.path);
}

Result<bool> Watch::wait(const Deadline &until) {
    for (;;) {
        const std::int64_t ns = until.boot - boot_clock().ns;
        if (ns <= 0) return false;
        const timespec left = {ns / 1'000'000'000, ns % 1'000'000'000};
        const int ready = ::ppoll(polls_.data(), polls_.size(), until.boot == INT64_MAX ? nullptr : &left, nullptr);
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return fail_errno(Code::io_error, "poll", errno);
    }
}

// Creates it whole under another name first: another process may open it at once.
void make_bell(const std::string &path, unsigned mode) {
    const std::string fresh = path + "." + std::to_string(::getpid());
    ::unlink(fresh.c_str());
    if (::mkfifo(fresh.c_str(), 0600) != 0) return;
    // By descriptor: in a directory that others may write, the name may be a link by now.
    const Fd fd = open_bell(fresh);
    if (fd && ::fchmod(fd.get(), mode) == 0) (void)!::link(fresh.c_str(), path.c_str());
    ::unlink(fresh.c_str());
}

}  // namespace

Result<Bell> Bell::open(const Place &head, unsigned mode) {
    const std::string path = bell_path(head);
    Fd fd = open_bell(path);
    if (!fd && errno == ENOENT) {
        make_bell(path, mode);
        fd = open_bell(path);
    }
    if (!fd) return fail_errno(Code::io_error, "cannot open the bell " + path + " of counted slots", errno);
    return Bell(std::move(fd));
}

void Bell::hush() const {
    char rung[4096];
    while (::read(fd(), rung, sizeof rung) == static_cast<ssize_t>(sizeof rung)) {}
}

void Bell::ring(const Place &head) {
    if (planted("locks.slots_no_bell")) return;
    if (const Fd fd = open_bell(bell_path(head))) (void)!::write(fd.get(), "!", 1);  // a full FIFO has been rung
}

Result<bool> wait_for_change(const Bell &bell, const Place &head, const std::vector<SlotHolder> &held,
                             const Deadline &until) {
    Watch watch(head, bell);
    for (const SlotHolder &holder : held)
        if (!watch.add(holder)) return true;
    if (Status s = watch.complete(); !s) return s;
    Result<bool> changed = watch.wait(until);
    if (changed && *changed) bell.hush();
    return changed;
}

}  // namespace dcs::locks
