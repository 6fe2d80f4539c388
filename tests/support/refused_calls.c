#include "refuse.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int refuses_number(const char *call, long number) {
    char text[32];
    snprintf(text, sizeof text, "=%ld=", number);
    return dcs_refuses(call, -1, text);
}

/* The function of this name that would have been called without us. */
#define REAL(name)                 \
    static __typeof__(name) *real; \
    if (real == NULL) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
/* Functions that answer -1, what they are about, and what they are called with. */
#define CALL(name, fd, path, ...)                                 \
    REAL(name);                                                   \
    if (dcs_refuses(#name, fd, path)) return errno == 0 ? 0 : -1; \
    return real(__VA_ARGS__)
#define NUMBERED(name, number, ...)                                \
    REAL(name);                                                    \
    if (refuses_number(#name, number)) return errno == 0 ? 0 : -1; \
    return real(__VA_ARGS__)
/* Functions that answer NULL. */
#define POINTER(name, fd, path, ...) \
    REAL(name);                      \
    return dcs_refuses(#name, fd, path) ? NULL : real(__VA_ARGS__)
#define OPEN(name, as, fd, path, ...)      \
    REAL(name);                            \
    mode_t mode = 0;                       \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list list;                      \
        va_start(list, flags);             \
        mode = va_arg(list, mode_t);       \
        va_end(list);                      \
    }                                      \
    return dcs_refuses(as, fd, path) ? -1 : real(__VA_ARGS__)
/* The arguments of a function that takes as many as it likes. */
#define ARGUMENTS(last, n)                                            \
    unsigned long a[n];                                               \
    va_list list;                                                     \
    va_start(list, last);                                             \
    for (int i = 0; i < (n); i++) a[i] = va_arg(list, unsigned long); \
    va_end(list)

/* Files. */
int open(const char *path, int flags, ...) { OPEN(open, "open", -1, path, path, flags, mode); }
int open64(const char *path, int flags, ...) { OPEN(open64, "open", -1, path, path, flags, mode); }
int openat(int fd, const char *path, int flags, ...) { OPEN(openat, "openat", fd, path, fd, path, flags, mode); }
int mkdir(const char *path, mode_t mode) { CALL(mkdir, -1, path, path, mode); }
int mkdirat(int fd, const char *path, mode_t mode) { CALL(mkdirat, fd, path, fd, path, mode); }
int unlink(const char *path) { CALL(unlink, -1, path, path); }
int unlinkat(int fd, const char *path, int flags) { CALL(unlinkat, fd, path, fd, path, flags); }
int rename(const char *from, const char *to) /* either path may be what the order is about */
{
    char both[8192];
    snprintf(both, sizeof both, "%s %s", from, to);
    CALL(rename, -1, both, from, to);
}
int renameat(int from_fd, const char *from, int to_fd, const char *to) {
    CALL(renameat, from_fd, to, from_fd, from, to_fd, to);
}
int chmod(const char *path, mode_t mode) { CALL(chmod, -1, path, path, mode); }
int fchmod(int fd, mode_t mode) { CALL(fchmod, fd, NULL, fd, mode); }
int fchmodat(int fd, const char *path, mode_t mode, int flags) { CALL(fchmodat, fd, path, fd, path, mode, flags); }
int fchown(int fd, uid_t uid, gid_t gid) { CALL(fchown, fd, NULL, fd, uid, gid); }
int chdir(const char *path) { CALL(chdir, -1, path, path); }
int fchdir(int fd) { CALL(fchdir, fd, NULL, fd); }
int stat(const char *path, struct stat *about) { CALL(stat, -1, path, path, about); }
int fstat(int fd, struct stat *about) { CALL(fstat, fd, NULL, fd, about); }
int fstatat(int fd, const char *path, struct stat *about, int flags) {
    CALL(fstatat, fd, path, fd, path, about, flags);
}
int fstatvfs(int fd, struct statvfs *about) { CALL(fstatvfs, fd, NULL, fd, about); }
int fstatfs(int fd, struct statfs *about) { CALL(fstatfs, fd, NULL, fd, about); }
ssize_t readlink(const char *path, char *to, size_t room) { CALL(readlink, -1, path, path, to, room); }
int memfd_create(const char *name, unsigned flags) { CALL(memfd_create, -1, name, name, flags); }
int flock(int fd, int how) { CALL(flock, fd, NULL, fd, how); }

/* Bytes. */
ssize_t write(int fd, const void *from, size_t bytes) { CALL(write, fd, NULL, fd, from, bytes); }
ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at) { CALL(pwrite, fd, NULL, fd, from, bytes, at); }
ssize_t read(int fd, void *to, size_t bytes) { CALL(read, fd, NULL, fd, to, bytes); }
ssize_t pread(int fd, void *to, size_t bytes, off_t at) { CALL(pread, fd, NULL, fd, to, bytes, at); }
int posix_fallocate(int fd, off_t at, off_t length) /* returns its error */
{
    REAL(posix_fallocate);
    return dcs_refuses("posix_fallocate", fd, NULL) ? errno : real(fd, at, length);
}
int fsync(int fd) { CALL(fsync, fd, NULL, fd); }
int fdatasync(int fd) { CALL(fdatasync, fd, NULL, fd); }
int syncfs(int fd) { CALL(syncfs, fd, NULL, fd); }
int ftruncate(int fd, off_t length) { CALL(ftruncate, fd, NULL, fd, length); }
off_t lseek(int fd, off_t at, int whence) { CALL(lseek, fd, NULL, fd, at, whence); }
ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t bytes, unsigned flags) {
    CALL(copy_file_range, from, NULL, from, from_at, to, to_at, bytes, flags);
}
int close(int fd) /* whatever it says, the descriptor is gone */
{
    REAL(close);
    const int refused = dcs_refuses("close", fd, NULL), why = errno, result = real(fd);
    if (refused) errno = why;
    return refused ? -1 : result;
}
int ioctl(int fd, unsigned long request, ...) {
    ARGUMENTS(request, 1);
    CALL(ioctl, fd, NULL, fd, request, a[0]);
}
int fcntl(int fd, int command, ...) {
    ARGUMENTS(command, 1);
    NUMBERED(fcntl, command, fd, command, a[0]);
}

/* Streams and directories. */
FILE *tmpfile(void) { POINTER(tmpfile, -1, NULL); }
FILE *fdopen(int fd, const char *mode) { POINTER(fdopen, fd, mode, fd, mode); }
FILE *fopen(const char *path, const char *mode) { POINTER(fopen, -1, path, path, mode); }
size_t fwrite(const void *from, size_t size, size_t many, FILE *to) {
    REAL(fwrite);
    return dcs_refuses("fwrite", -1, NULL) ? 0 : real(from, size, many, to);
}
size_t fread(void *to, size_t size, size_t many, FILE *from) /* ferror() says so too */
{
    REAL(fread);
    if (!dcs_refuses("fread", fileno(from), NULL)) return real(to, size, many, from);
    from->_flags |= _IO_ERR_SEEN;
    return 0;
}
int fflush(FILE *to) { CALL(fflush, -1, NULL, to); }
DIR *fdopendir(int fd) { POINTER(fdopendir, fd, NULL, fd); }
DIR *opendir(const char *path) { POINTER(opendir, -1, path, path); }
ssize_t getdents64(int fd, void *to, size_t bytes) { CALL(getdents64, fd, NULL, fd, to, bytes); }
struct dirent *readdir(DIR *stream) {
    POINTER(readdir, dirfd(stream), NULL, stream);
}
char *getcwd(char *to, size_t room) { POINTER(getcwd, -1, NULL, to, room); }

/* Descriptors, and waiting. */
int socket(int family, int type, int protocol) { NUMBERED(socket, family, family, type, protocol); }
int socketpair(int family, int type, int protocol, int ends[2]) {
    NUMBERED(socketpair, family, family, type, protocol, ends);
}
int listen(int fd, int backlog) { CALL(listen, fd, NULL, fd, backlog); }
ssize_t send(int fd, const void *from, size_t bytes, int flags) { CALL(send, fd, NULL, fd, from, bytes, flags); }
ssize_t recv(int fd, void *to, size_t bytes, int flags) { CALL(recv, fd, NULL, fd, to, bytes, flags); }
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) { CALL(sendmsg, fd, NULL, fd, message, flags); }
ssize_t recvmsg(int fd, struct msghdr *message, int flags) { CALL(recvmsg, fd, NULL, fd, message, flags); }
int pipe(int ends[2]) { CALL(pipe, -1, NULL, ends); }
int pipe2(int ends[2], int flags) { CALL(pipe2, -1, NULL, ends, flags); }
int dup2(int from, int to) { NUMBERED(dup2, to, from, to); }
int epoll_create1(int flags) { CALL(epoll_create1, -1, NULL, flags); }
int epoll_ctl(int fd, int what, int other, struct epoll_event *event) {
    NUMBERED(epoll_ctl, what, fd, what, other, event);
}
int poll(struct pollfd *all, nfds_t many, int ms) { CALL(poll, -1, NULL, all, many, ms); }
int ppoll(struct pollfd *all, nfds_t many, const struct timespec *left, const sigset_t *mask) {
    CALL(ppoll, -1, NULL, all, many, left, mask);
}
int signalfd(int fd, const sigset_t *set, int flags) { CALL(signalfd, -1, NULL, fd, set, flags); }
int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer) {
    CALL(timer_create, -1, NULL, clock, event, timer);
}

/* Processes. */
pid_t fork(void) { CALL(fork, -1, NULL); }
/* A frame that a child has left cannot be gone back to, so this is a fork, enough for a caller that execs at once. */
pid_t vfork(void) { return dcs_refuses("vfork", -1, NULL) ? -1 : fork(); }
int clone(int (*run)(void *), void *stack, int flags, void *with, ...) {
    ARGUMENTS(with, 3);
    CALL(clone, -1, NULL, run, stack, flags, with, a[0], a[1], a[2]);
}
/* It returns its error. */
int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
                 char *const argv[], char *const env[]) {
    REAL(posix_spawnp);
    return dcs_refuses("posix_spawnp", -1, file) ? errno : real(pid, file, actions, how, argv, env);
}
pid_t waitpid(pid_t pid, int *status, int options) { CALL(waitpid, -1, NULL, pid, status, options); }
int kill(pid_t pid, int number) { NUMBERED(kill, number, pid, number); }
pid_t getppid(void) { CALL(getppid, -1, NULL); }
pid_t setsid(void) { CALL(setsid, -1, NULL); }
int setpgid(pid_t pid, pid_t group) { CALL(setpgid, -1, NULL, pid, group); }
int pthread_sigmask(int how, const sigset_t *set, sigset_t *before) /* returns its error */
{
    REAL(pthread_sigmask);
    return dcs_refuses("pthread_sigmask", -1, NULL) ? errno : real(how, set, before);
}
int prctl(int option, ...) {
    ARGUMENTS(option, 4);
    NUMBERED(prctl, option, option, a[0], a[1], a[2], a[3]);
}

/* What the machine knows. */
ssize_t getrandom(void *to, size_t bytes, unsigned flags) { CALL(getrandom, -1, NULL, to, bytes, flags); }
struct passwd *getpwuid(uid_t uid) {
    POINTER(getpwuid, -1, NULL, uid);
}
struct group *getgrnam(const char *name) {
    POINTER(getgrnam, -1, name, name);
}
/* It returns its error. */
int getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t room, struct passwd **found) {
    REAL(getpwuid_r);
    if (!dcs_refuses("getpwuid_r", -1, NULL)) return real(uid, entry, buffer, room, found);
    *found = NULL;
    return errno;
}
int getpwnam_r(const char *name, struct passwd *entry, char *buffer, size_t room, struct passwd **found) {
    REAL(getpwnam_r);
    if (!dcs_refuses("getpwnam_r", -1, name)) return real(name, entry, buffer, room, found);
    *found = NULL;
    return errno;
}
int getgrnam_r(const char *name, struct group *entry, char *buffer, size_t room, struct group **found) {
    REAL(getgrnam_r);
    if (!dcs_refuses("getgrnam_r", -1, name)) return real(name, entry, buffer, room, found);
    *found = NULL;
    return errno;
}

/* What glibc has no function for; programs call it by its number. */
static const struct {
    const char *name;
    long number;
} bare[] = {{"landlock_create_ruleset", 444},
            {"landlock_add_rule", 445},
            {"landlock_restrict_self", 446},
            {"seccomp", SYS_seccomp}};

long syscall(long number, ...) {
    ARGUMENTS(number, 6);
    if (number == SYS_openat2 && dcs_refuses("openat2", (int)a[0], (const char *)a[1])) return -1;
    for (size_t i = 0; i < sizeof bare / sizeof *bare; i++)
        if (number == bare[i].number && dcs_refuses(bare[i].name, -1, NULL))
            return errno != 0 ? -1 : number == bare[0].number ? dcs_kernel(SYS_dup, 2L) : 0;
    if (refuses_number("syscall", number)) return errno == 0 ? 0 : -1;
    return dcs_kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
