#include "refuse_call.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static char refused_calls[64], refused_of[128];
static int refused_error, refused_skip;
static atomic_int made, refused;

void refuse_call(const char *calls, int error, int skip, const char *of)
{
    refused_calls[0] = '\0';
    if (calls == NULL) return;
    refused_error = error;
    refused_skip = skip;
    atomic_store(&made, 0);
    atomic_store(&refused, 0);
    snprintf(refused_of, sizeof refused_of, "%s", of);
    snprintf(refused_calls, sizeof refused_calls, ",%s,", calls);
}

int refuse_count(void) { return atomic_load(&refused); }

static int number_of(const char *name)
{
    static const struct { const char *name; int number; } errors[] = {
        {"EPERM", EPERM}, {"EIO", EIO}, {"EAGAIN", EAGAIN}, {"ENOMEM", ENOMEM}, {"EACCES", EACCES}, {"EMFILE", EMFILE},
        {"ENOSPC", ENOSPC}, {"EROFS", EROFS}, {"ECONNREFUSED", ECONNREFUSED}, {"ESRCH", ESRCH}, {"ENOENT", ENOENT},
        {"EPIPE", EPIPE}, {"ECONNRESET", ECONNRESET}, {"ETIMEDOUT", ETIMEDOUT}, {"0", 0}};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (strcmp(errors[i].name, name) == 0) return errors[i].number;
    fprintf(stderr, "REFUSE: the error %s is not known to tests/support/refuse.c\n", name);
    abort();
}

__attribute__((constructor)) static void from_environment(void)
{
    const char *plan = getenv("REFUSE");
    if (plan == NULL || *plan == '\0') return;
    char calls[48] = "", error[32] = "", of[128] = "";
    int skip = 0;
    if (sscanf(plan, "%47[^:]:%31[^:]:%d:%127s", calls, error, &skip, of) < 2) abort();
    refuse_call(calls, number_of(error), skip, of);
}

/* Is this call one that is refused? */
static int hit(const char *call, const char *of)
{
    if (refused_calls[0] == '\0') return 0;
    const char *at = strstr(refused_calls, call);
    if (at == NULL || at[-1] != ',' || at[strlen(call)] != ',') return 0;
    if (refused_of[0] != '\0' && (of == NULL || strstr(of, refused_of) == NULL)) return 0;
    const int before = atomic_fetch_add(&made, 1);
    if (refused_skip < 0 ? (before + 1) % -refused_skip != 0 : before < refused_skip) return 0;
    atomic_fetch_add(&refused, 1);
    errno = refused_error;
    return 1;
}

static int hit_number(const char *call, long number)
{
    char digits[32] = "";
    snprintf(digits, sizeof digits, "%ld", number);
    if (refused_of[0] != '\0' && strcmp(digits, refused_of) != 0) return 0;
    return hit(call, digits);
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (real == NULL) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
/* A call that answers -1, and what it is made of. */
#define PLAIN(name, of, ...) \
    REAL(name); \
    return hit(#name, of) ? (refused_error == 0 ? 0 : -1) : real(__VA_ARGS__)
#define NUMBERED(name, number, ...) \
    REAL(name); \
    return hit_number(#name, number) ? (refused_error == 0 ? 0 : -1) : real(__VA_ARGS__)

#define OPEN(name, ...) \
    REAL(name); \
    mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list list; \
        va_start(list, flags); \
        mode = va_arg(list, mode_t); \
        va_end(list); \
    } \
    return hit("open", path) ? -1 : real(__VA_ARGS__)

int open(const char *path, int flags, ...) { OPEN(open, path, flags, mode); }
int open64(const char *path, int flags, ...) { OPEN(open64, path, flags, mode); }
int openat(int fd, const char *path, int flags, ...) { OPEN(openat, fd, path, flags, mode); }

pid_t fork(void) { PLAIN(fork, NULL); }
pid_t getppid(void) { PLAIN(getppid, NULL); }
pid_t setsid(void) { PLAIN(setsid, NULL); }
pid_t waitpid(pid_t pid, int *status, int options) { PLAIN(waitpid, NULL, pid, status, options); }
int setpgid(pid_t pid, pid_t group) { PLAIN(setpgid, NULL, pid, group); }
int kill(pid_t pid, int number) { NUMBERED(kill, number, pid, number); }
int pipe2(int pair[2], int flags) { PLAIN(pipe2, NULL, pair, flags); }
int pipe(int pair[2]) { PLAIN(pipe, NULL, pair); }
int dup2(int from, int to) { NUMBERED(dup2, to, from, to); }
int socket(int family, int type, int protocol) { NUMBERED(socket, family, family, type, protocol); }
int socketpair(int family, int type, int protocol, int pair[2])
{
    PLAIN(socketpair, NULL, family, type, protocol, pair);
}
int listen(int fd, int backlog) { PLAIN(listen, NULL, fd, backlog); }
ssize_t send(int fd, const void *from, size_t bytes, int flags) { PLAIN(send, NULL, fd, from, bytes, flags); }
ssize_t recv(int fd, void *to, size_t bytes, int flags) { PLAIN(recv, NULL, fd, to, bytes, flags); }
ssize_t recvmsg(int fd, struct msghdr *message, int flags) { PLAIN(recvmsg, NULL, fd, message, flags); }
int epoll_ctl(int fd, int what, int other, struct epoll_event *event)
{
    NUMBERED(epoll_ctl, what, fd, what, other, event);
}
int epoll_create1(int flags) { PLAIN(epoll_create1, NULL, flags); }
int poll(struct pollfd *all, nfds_t count, int ms) { PLAIN(poll, NULL, all, count, ms); }
int ppoll(struct pollfd *all, nfds_t count, const struct timespec *left, const sigset_t *mask)
{
    PLAIN(ppoll, NULL, all, count, left, mask);
}
int signalfd(int fd, const sigset_t *set, int flags) { PLAIN(signalfd, NULL, fd, set, flags); }
int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
    PLAIN(timer_create, NULL, clock, event, timer);
}
int flock(int fd, int how) { PLAIN(flock, NULL, fd, how); }
int fstat(int fd, struct stat *about) { PLAIN(fstat, NULL, fd, about); }
int stat(const char *path, struct stat *about) { PLAIN(stat, path, path, about); }
int fstatat(int fd, const char *path, struct stat *about, int flags) { PLAIN(fstatat, path, fd, path, about, flags); }
int fstatvfs(int fd, struct statvfs *about) { PLAIN(fstatvfs, NULL, fd, about); }
int fstatfs(int fd, struct statfs *about) { PLAIN(fstatfs, NULL, fd, about); }
int mkdir(const char *path, mode_t mode) { PLAIN(mkdir, path, path, mode); }
int mkdirat(int fd, const char *path, mode_t mode) { PLAIN(mkdirat, path, fd, path, mode); }
int chmod(const char *path, mode_t mode) { PLAIN(chmod, path, path, mode); }
int fchmodat(int fd, const char *path, mode_t mode, int flags) { PLAIN(fchmodat, path, fd, path, mode, flags); }
int rename(const char *from, const char *to) { PLAIN(rename, to, from, to); }
int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    PLAIN(renameat, to, from_fd, from, to_fd, to);
}
ssize_t readlink(const char *path, char *to, size_t room) { PLAIN(readlink, path, path, to, room); }
int ftruncate(int fd, off_t length) { PLAIN(ftruncate, NULL, fd, length); }
int fsync(int fd) { PLAIN(fsync, NULL, fd); }
int fdatasync(int fd) { PLAIN(fdatasync, NULL, fd); }
int syncfs(int fd) { PLAIN(syncfs, NULL, fd); }
ssize_t write(int fd, const void *from, size_t bytes) { PLAIN(write, NULL, fd, from, bytes); }
ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at) { PLAIN(pwrite, NULL, fd, from, bytes, at); }
ssize_t read(int fd, void *to, size_t bytes) { PLAIN(read, NULL, fd, to, bytes); }
ssize_t pread(int fd, void *to, size_t bytes, off_t at) { PLAIN(pread, NULL, fd, to, bytes, at); }
int memfd_create(const char *name, unsigned flags) { PLAIN(memfd_create, name, name, flags); }

/* Whatever close says, the descriptor is gone. */
int close(int fd)
{
    REAL(close);
    const int result = real(fd);
    return hit("close", NULL) ? -1 : result;
}

int fcntl(int fd, int command, ...)
{
    REAL(fcntl);
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    return hit_number("fcntl", command) ? -1 : real(fd, command, argument);
}

int prctl(int option, ...)
{
    REAL(prctl);
    unsigned long a[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++) a[i] = va_arg(list, unsigned long);
    va_end(list);
    return hit_number("prctl", option) ? (refused_error == 0 ? 0 : -1) : real(option, a[0], a[1], a[2], a[3]);
}

long syscall(long number, ...)
{
    REAL(syscall);
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (hit_number("syscall", number)) return refused_error == 0 ? 0 : -1;
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int clone(int (*run)(void *), void *stack, int flags, void *with, ...) { PLAIN(clone, NULL, run, stack, flags, with); }

int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    REAL(pthread_sigmask);
    return hit("pthread_sigmask", NULL) ? refused_error : real(how, set, before);
}

int getgrnam_r(const char *name, struct group *entry, char *buffer, size_t room, struct group **found)
{
    REAL(getgrnam_r);
    if (!hit("getgrnam_r", name)) return real(name, entry, buffer, room, found);
    *found = NULL;
    return refused_error;
}

#define STREAM(name, of, ...) \
    REAL(name); \
    return hit(#name, of) ? NULL : real(__VA_ARGS__)

FILE *tmpfile(void) { STREAM(tmpfile, NULL); }
FILE *fdopen(int fd, const char *mode) { STREAM(fdopen, mode, fd, mode); }
FILE *fopen(const char *path, const char *mode) { STREAM(fopen, path, path, mode); }
DIR *fdopendir(int fd) { STREAM(fdopendir, NULL, fd); }
DIR *opendir(const char *path) { STREAM(opendir, path, path); }
struct dirent *readdir(DIR *stream) { STREAM(readdir, NULL, stream); }
char *getcwd(char *to, size_t room) { STREAM(getcwd, NULL, to, room); }
struct group *getgrnam(const char *name) { STREAM(getgrnam, name, name); }
size_t fwrite(const void *from, size_t size, size_t count, FILE *to)
{
    REAL(fwrite);
    return hit("fwrite", NULL) ? 0 : real(from, size, count, to);
}
int fflush(FILE *to) { PLAIN(fflush, NULL, to); }
