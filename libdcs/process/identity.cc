#include "process/identity.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <poll.h>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/planted.h"
#include "base/require.h"
#include "process/table.h"

namespace dcs {
namespace {

constexpr long pidfs_magic = 0x50494446;

Fd open_pidfd(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

// Before pidfs all pidfds shared one anonymous inode, which identifies nothing.
std::uint64_t inode_of(int pidfd) {
    struct statfs fs = {};
    struct stat st = {};
    if (::fstatfs(pidfd, &fs) != 0 || fs.f_type != pidfs_magic || ::fstat(pidfd, &st) != 0) return 0;
    return st.st_ino;
}

Status gone(pid_t pid) { return fail(Code::not_found, "process " + std::to_string(pid) + " has ended"); }

}  // namespace

Result<ProcessIdentity> identify(pid_t pid) {
    ProcessStat stat;
    ProcessIdentity who = identify_child(pid, 0);
    if (pid <= 0 || !read_stat(pid, stat) || stat.state == 'Z' || stat.state == 'X') return gone(pid);
    who.start_ticks = stat.start_time;
    return who;
}

ProcessIdentity identify_child(pid_t pid, std::uint64_t start_ticks) {
    ProcessIdentity who{pid, start_ticks, 0};
    if (const Fd pidfd = pid > 0 ? open_pidfd(pid) : Fd()) who.pidfs_inode = inode_of(pidfd.get());
    return who;
}

const ProcessIdentity &own_identity() {
    thread_local ProcessIdentity own;
    if (own.pid != ::getpid()) {
        Result<ProcessIdentity> found = identify(::getpid());
        own = found ? *found : ProcessIdentity{::getpid(), 0, 0};
    }
    return own;
}

Result<ProcessHandle> ProcessHandle::open(const ProcessIdentity &process) {
    if (process.pid <= 0) return gone(process.pid);
    const auto failed = [&] {
        return fail_errno(Code::io_error, "cannot open process " + std::to_string(process.pid), errno);
    };
    ProcessHandle handle;
    handle.fd_ = open_pidfd(process.pid);
    if (!handle.fd_) return errno == ESRCH || errno == EINVAL ? gone(process.pid) : failed();
    if (planted("locks.identity_is_a_pid")) return handle;
    if (const std::uint64_t inode = inode_of(handle.fd_.get()); inode != 0 && process.pidfs_inode != 0) {
        if (inode != process.pidfs_inode) return gone(process.pid);
        return handle;
    }
    ProcessStat stat;
    errno = 0;
    if (!read_stat(process.pid, stat))  // needs a descriptor, too
        return out_of_descriptors(errno) ? failed() : gone(process.pid);
    if (stat.start_time != process.start_ticks) return gone(process.pid);
    return handle;
}

Status ProcessHandle::signal(int number) const {
    DCS_REQUIRE(fd_, "the handle is open");
    if (::syscall(SYS_pidfd_send_signal, fd_.get(), number, nullptr, 0) == 0) return Status::ok();
    if (errno == EPERM) return fail(Code::refused, "not permitted to signal a process of another user");
    if (errno == ESRCH) return fail(Code::not_found, "the process has ended");
    return fail_errno(Code::io_error, "cannot signal a process", errno);
}

bool ProcessHandle::ended(std::int64_t until_ns) const {
    DCS_REQUIRE(fd_, "the handle is open");
    for (;;) {
        const std::int64_t left = std::max<std::int64_t>(0, until_ns == 0 ? 0 : until_ns - boot_clock().ns);
        timespec wait = {left / 1'000'000'000, left % 1'000'000'000};
        pollfd one = {fd_.get(), POLLIN, 0};
        const int ready = ::ppoll(&one, 1, &wait, nullptr);
        if (ready > 0) return true;
        if (ready == 0) return false;
        if (errno != EINTR) return false;
    }
}

std::vector<pid_t> self_and_ancestors() {
    std::vector<pid_t> line;
    pid_t pid = ::getpid();
    ProcessStat stat;
    while (pid > 0 && line.size() < 4096) {  // deeper than any real tree; /proc may change during the walk
        line.push_back(pid);
        if (!read_stat(pid, stat)) break;
        pid = stat.parent;
    }
    return line;
}

}  // namespace dcs
