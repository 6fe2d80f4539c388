#include "refuse.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { orders_max = 16 };

struct order {
    char call[32], about[256];
    int error, skip, times, counts;
};

static struct order orders[orders_max];
static int count, refused, looked;

static const struct { const char *name; int number; } errors[] = {
    {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EACCES", EACCES}, {"EPERM", EPERM},   {"EMFILE", EMFILE},
    {"EXDEV", EXDEV},   {"ENOMEM", ENOMEM}, {"ENOSYS", ENOSYS}, {"EAGAIN", EAGAIN}, {"ENODEV", ENODEV},
    {"EINVAL", EINVAL}, {"EROFS", EROFS},   {"EDQUOT", EDQUOT}, {"DONE", 0}};

static int error_of(const char *name)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strcmp(errors[i].name, name) == 0) return errors[i].number;
    return -1;
}

/* CALL:ABOUT:ERROR[:SKIP[:TIMES]] */
static int add(char *text)
{
    char *fields[5] = {text, "", "", "0", "0"};
    for (int n = 1; n < 5 && (text = strchr(text, ':')) != NULL; n++) {
        *text++ = '\0';
        fields[n] = text;
    }
    struct order *o = &orders[count];
    memset(o, 0, sizeof *o);
    snprintf(o->call, sizeof o->call, "%s", fields[0]);
    snprintf(o->about, sizeof o->about, "%s", fields[1]);
    o->error = error_of(fields[2]);
    o->skip = atoi(fields[3]);
    o->times = atoi(fields[4]);
    o->counts = o->times > 0;
    count++;
    return o->error >= 0;
}

int dcs_refuse(const char *text)
{
    char copy[2048];
    int good = snprintf(copy, sizeof copy, "%s", text) < (int)sizeof copy;
    count = refused = 0;
    looked = 1;
    char *rest = NULL;
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        good = count < orders_max && add(word) && good;
    return good;
}

int dcs_refused(void) { return refused; }

/* Is this call one that fails? errno is set then; 0 if it is only said to be done. */
static int refuses(const char *call, int fd, const char *path)
{
    if (!looked) {
        const char *said = getenv("DCS_REFUSE");
        looked = 1;
        if (said != NULL && !dcs_refuse(said)) {
            static const char text[] = "DCS_REFUSE is not of the form CALL:ABOUT:ERROR[:SKIP[:TIMES]]\n";
            syscall(SYS_write, 2, text, sizeof text - 1);
            _exit(99);
        }
    }
    for (int i = 0; i < count; i++) {
        struct order *o = &orders[i];
        if (strcmp(o->call, call) != 0 || (o->counts && o->times == 0)) continue;
        if (o->about[0] != '\0') {
            char name[64], leads_to[4096] = "";
            snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
            if (fd >= 0) syscall(SYS_readlink, name, leads_to, sizeof leads_to - 1);
            if (strstr(leads_to, o->about) == NULL && (path == NULL || strstr(path, o->about) == NULL)) continue;
        }
        if (o->skip-- > 0) continue;
        o->skip = 0;
        if (o->counts) o->times--;
        refused++;
        errno = o->error;
        return 1;
    }
    return 0;
}

/* The function of this name that would have been called without us. */
#define REAL(name) \
    static __typeof__(name) *real; \
    if (real == NULL) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define OR_REAL(name, fd, path, failed, ...) \
    REAL(name); \
    if (refuses(#name, fd, path)) return failed; \
    return real(__VA_ARGS__)
#define OPEN(name, fd, path, ...) \
    REAL(name); \
    mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list list; \
        va_start(list, flags); \
        mode = va_arg(list, mode_t); \
        va_end(list); \
    } \
    if (refuses(#name, fd, path)) return -1; \
    return real(__VA_ARGS__)

int open(const char *path, int flags, ...) { OPEN(open, -1, path, path, flags, mode); }
int openat(int fd, const char *path, int flags, ...) { OPEN(openat, fd, path, fd, path, flags, mode); }

/* What glibc has no function for; programs call it by its number. */
static const struct { const char *name; long number; } bare[] = {
    {"landlock_create_ruleset", 444}, {"landlock_add_rule", 445},
    {"landlock_restrict_self", 446},  {"seccomp", SYS_seccomp}};

long syscall(long number, ...)
{
    REAL(syscall);
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_openat2 && refuses("openat2", (int)a[0], (const char *)a[1])) return -1;
    for (size_t i = 0; i < sizeof bare / sizeof *bare; i++)
        if (number == bare[i].number && refuses(bare[i].name, -1, NULL))
            return errno != 0 ? -1 : number == bare[0].number ? real(SYS_dup, 2L, 0L, 0L, 0L, 0L, 0L) : 0;
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int mkdir(const char *path, mode_t mode) { OR_REAL(mkdir, -1, path, -1, path, mode); }
int mkdirat(int fd, const char *path, mode_t mode) { OR_REAL(mkdirat, fd, path, -1, fd, path, mode); }
int unlink(const char *path) { OR_REAL(unlink, -1, path, -1, path); }
int unlinkat(int fd, const char *path, int flags) { OR_REAL(unlinkat, fd, path, -1, fd, path, flags); }
int rename(const char *from, const char *to) /* either path may be what the order is about */
{
    REAL(rename);
    char both[8192];
    snprintf(both, sizeof both, "%s %s", from, to);
    return refuses("rename", -1, both) ? -1 : real(from, to);
}
int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    OR_REAL(renameat, from_fd, from, -1, from_fd, from, to_fd, to);
}
int chmod(const char *path, mode_t mode) { OR_REAL(chmod, -1, path, -1, path, mode); }
int fchmod(int fd, mode_t mode) { OR_REAL(fchmod, fd, NULL, -1, fd, mode); }
int fchown(int fd, uid_t uid, gid_t gid) { OR_REAL(fchown, fd, NULL, -1, fd, uid, gid); }
int fchdir(int fd) { OR_REAL(fchdir, fd, NULL, -1, fd); }
int chdir(const char *path) { OR_REAL(chdir, -1, path, -1, path); }

ssize_t write(int fd, const void *from, size_t bytes) { OR_REAL(write, fd, NULL, -1, fd, from, bytes); }
ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at) { OR_REAL(pwrite, fd, NULL, -1, fd, from, bytes, at); }
ssize_t read(int fd, void *to, size_t bytes) { OR_REAL(read, fd, NULL, -1, fd, to, bytes); }
ssize_t pread(int fd, void *to, size_t bytes, off_t at) { OR_REAL(pread, fd, NULL, -1, fd, to, bytes, at); }
int posix_fallocate(int fd, off_t at, off_t length) /* returns its error */
{
    REAL(posix_fallocate);
    return refuses("posix_fallocate", fd, NULL) ? errno : real(fd, at, length);
}
int fsync(int fd) { OR_REAL(fsync, fd, NULL, -1, fd); }
int fdatasync(int fd) { OR_REAL(fdatasync, fd, NULL, -1, fd); }
int syncfs(int fd) { OR_REAL(syncfs, fd, NULL, -1, fd); }
int ftruncate(int fd, off_t length) { OR_REAL(ftruncate, fd, NULL, -1, fd, length); }
off_t lseek(int fd, off_t at, int whence) { OR_REAL(lseek, fd, NULL, -1, fd, at, whence); }
ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t bytes, unsigned flags)
{
    OR_REAL(copy_file_range, from, NULL, -1, from, from_at, to, to_at, bytes, flags);
}

int ioctl(int fd, unsigned long request, ...)
{
    REAL(ioctl);
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (refuses("ioctl", fd, NULL)) return errno == 0 ? 0 : -1;
    return real(fd, request, argument);
}

DIR *fdopendir(int fd) { OR_REAL(fdopendir, fd, NULL, NULL, fd); }
struct dirent *readdir(DIR *stream) { OR_REAL(readdir, dirfd(stream), NULL, NULL, stream); }

int socket(int family, int type, int protocol) { OR_REAL(socket, -1, NULL, -1, family, type, protocol); }
int socketpair(int family, int type, int protocol, int ends[2])
{
    OR_REAL(socketpair, -1, NULL, -1, family, type, protocol, ends);
}
int listen(int fd, int backlog) { OR_REAL(listen, -1, NULL, -1, fd, backlog); }
int pipe2(int ends[2], int flags) { OR_REAL(pipe2, -1, NULL, -1, ends, flags); }
int signalfd(int fd, const sigset_t *set, int flags) { OR_REAL(signalfd, -1, NULL, -1, fd, set, flags); }
int dup2(int from, int to) { OR_REAL(dup2, from, NULL, -1, from, to); }
int epoll_create1(int flags);
int epoll_create1(int flags) { OR_REAL(epoll_create1, -1, NULL, -1, flags); }
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) { OR_REAL(sendmsg, -1, NULL, -1, fd, message, flags); }
pid_t getppid(void) { OR_REAL(getppid, -1, NULL, -1); }
int prctl(int what, ...);
int prctl(int what, ...)
{
    REAL(prctl);
    unsigned long a[4];
    va_list list;
    va_start(list, what);
    for (int i = 0; i < 4; i++) a[i] = va_arg(list, unsigned long);
    va_end(list);
    char number[16];
    snprintf(number, sizeof number, "=%d=", what);
    if (refuses("prctl", -1, number)) return -1;
    return real(what, a[0], a[1], a[2], a[3]);
}
/* A frame that a child has left cannot be gone back to, so this is a fork, which does for whoever execs at once. */
pid_t vfork(void) { return refuses("vfork", -1, NULL) ? -1 : fork(); }
pid_t fork(void) { OR_REAL(fork, -1, NULL, -1); }
ssize_t getrandom(void *to, size_t bytes, unsigned flags);
ssize_t getrandom(void *to, size_t bytes, unsigned flags) { OR_REAL(getrandom, -1, NULL, -1, to, bytes, flags); }
