#include "base/beneath.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/require.h"

namespace dcs {
namespace {
constexpr int always = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
constexpr int again_most = 16;  // something was renamed while the kernel looked

int close_with(int fd, int error) noexcept {
    if (fd >= 0) ::close(fd);
    errno = error;
    return -1;
}

// The next part of `path` into `part`; what follows it, or null if it is the last. Errors: no such name below.
const char *next_part(const char *path, char (&part)[NAME_MAX + 1], bool &wrong) noexcept {
    const std::size_t length = std::strcspn(path, "/");
    wrong = length == 0 || length > NAME_MAX || (length == 2 && path[0] == '.' && path[1] == '.');
    if (wrong) return nullptr;
    std::memcpy(part, path, length);
    part[length] = '\0';
    return path[length] == '/' ? path + length + 1 : nullptr;
}

bool same_disk(int a, int b) noexcept {
    struct stat first {
    }, second{};
    return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev;
}
}  // namespace

int open_beneath_by_steps(int directory, const char *path, int flags, mode_t mode) noexcept {
    int here = -1;
    for (;;) {
        char part[NAME_MAX + 1];
        bool wrong = false;
        const char *rest = next_part(path, part, wrong);
        if (wrong) return close_with(here, EXDEV);
        const int from = here >= 0 ? here : directory;
        const int next = rest != nullptr ? ::openat(from, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                                         : ::openat(from, part, flags | always, mode);
        const int error = errno;
        if (here >= 0) ::close(here);
        if (next < 0) return close_with(-1, rest != nullptr && error == ENOTDIR ? ELOOP : error);
        if (!same_disk(directory, next)) return close_with(next, EXDEV);
        if (rest == nullptr) return next;
        here = next;
        path = rest;
    }
}

int open_beneath(int directory, const char *path, int flags, mode_t mode) noexcept {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags | always);
    how.mode = mode;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
    for (int i = 0; i < again_most; ++i) {
        const auto fd = static_cast<int>(::syscall(SYS_openat2, directory, path, &how, sizeof how));
        if (fd >= 0) return fd;
        if (errno == ENOSYS || errno == EPERM) break;  // an old kernel, or a filter that does not know the call
        if (errno != EAGAIN && errno != EINTR) return -1;
    }
    return open_beneath_by_steps(directory, path, flags, mode);
}

std::string strange_file(const struct stat &st, uid_t owner) {
    if (S_ISLNK(st.st_mode)) return "a symbolic link";
    if (!S_ISREG(st.st_mode)) return "not a regular file";
    if (st.st_nlink != 1) return "a file with " + std::to_string(st.st_nlink) + " names";
    if (st.st_uid != owner) return "a file of another user";
    return {};
}

int open_regular(const char *path) noexcept {
    const int seen = ::open(path, O_PATH | O_CLOEXEC);
    struct stat st {};
    if (seen < 0 || ::fstat(seen, &st) != 0) return close_with(seen, errno);
    if (!S_ISREG(st.st_mode)) return close_with(seen, EACCES);
    char name[32];
    std::snprintf(name, sizeof name, "/proc/self/fd/%d", seen);
    const int fd = ::open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const int error = errno;
    ::close(seen);
    errno = error;
    return fd;
}

// The bare calls: they are of this thread alone, and tell nothing but who one was before.
ActAs::ActAs(uid_t uid, gid_t gid) noexcept {
    if (::geteuid() != 0) return;
    ::syscall(SYS_setfsgid, gid);
    ::syscall(SYS_setfsuid, uid);
    DCS_REQUIRE(static_cast<uid_t>(::syscall(SYS_setfsuid, -1)) == uid, "the rights for files are the user's");
}
ActAs::~ActAs() {
    if (::geteuid() != 0) return;
    ::syscall(SYS_setfsuid, ::geteuid());
    ::syscall(SYS_setfsgid, ::getegid());
    DCS_REQUIRE(static_cast<uid_t>(::syscall(SYS_setfsuid, -1)) == ::geteuid(), "the rights for files are ours again");
}

}  // namespace dcs
