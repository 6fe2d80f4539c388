/* A library for LD_PRELOAD: is between a process and libc's file calls, counts those on files below one
 * directory, and makes the n-th fail. It knows a file by its descriptor: whatever was opened below the directory,
 * or relative to such a descriptor. For processes with one thread at a time in these calls. */
#include "faulty.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { descriptors_max = 4096 };

static char watched[4096];
static size_t watched_length;
static char below[descriptors_max]; /* [descriptor]: leads to a file below `watched` */
static struct faulty_plan plan;
static struct faulty_notes *notes;
static unsigned interrupted;

enum outcome { pass, fail_before, fail_after, half };

faulty_watch_function faulty_watch;
faulty_stop_function faulty_stop;

void faulty_watch(const char *directory, const struct faulty_plan *new_plan, struct faulty_notes *new_notes) {
    strncpy(watched, directory, sizeof watched - 1);
    watched_length = strlen(watched);
    plan = *new_plan;
    notes = new_notes;
    interrupted = 0;
    memset(below, 0, sizeof below);
}

void faulty_stop(void) {
    watched_length = 0;
    memset(below, 0, sizeof below);
}

static int known(int fd) { return watched_length != 0 && fd >= 0 && fd < descriptors_max && below[fd]; }

static int concerns(int fd, const char *path) {
    if (watched_length == 0) return 0;
    if (path == NULL || path[0] != '/') return known(fd);
    return strncmp(path, watched, watched_length) == 0 && (path[watched_length] == '/' || path[watched_length] == '\0');
}

static int remember(int fd, int concerned) {
    if (fd >= 0 && fd < descriptors_max) below[fd] = (char)(concerned && watched_length != 0);
    return fd;
}

static int applies(enum faulty_kind kind, size_t bytes) {
    if (plan.fault == faulty_short) return (kind == faulty_writes || kind == faulty_reads) && bytes > 1;
    if (plan.fault != faulty_kill && plan.error == EMFILE) return kind == faulty_opens;
    return 1;
}

/* Counts one call and says what becomes of it; errno is set if it fails before it is made. */
static enum outcome next(enum faulty_kind kind, size_t bytes) {
    const long number = ++notes->calls;
    if (notes->kinds != NULL && number <= notes->size) notes->kinds[number - 1] = (char)kind;
    if (plan.at == 0 || number < plan.at || (number > plan.at && !plan.from_then_on)) return pass;
    if (!applies(kind, bytes)) return pass;
    if (plan.from_then_on && plan.error == EINTR && ++interrupted % 4 == 0) return pass;
    notes->hits++;
    if (plan.fault == faulty_kill) kill(getpid(), SIGKILL);
    if (plan.fault == faulty_short) return half;
    errno = plan.error;
    return plan.fault == faulty_error ? fail_before : fail_after;
}

/* The function of this name that would have been called without us. */
#define REAL(name)                 \
    static __typeof__(name) *real; \
    if (real == NULL) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* A call of int result: `made` is the real one. */
#define CALL(kind, concerned, failed, made)                     \
    do {                                                        \
        enum outcome what = (concerned) ? next(kind, 0) : pass; \
        if (what == fail_before) return failed;                 \
        __typeof__(made) result = made;                         \
        if (what == fail_after) {                               \
            errno = plan.error;                                 \
            return failed;                                      \
        }                                                       \
        return result;                                          \
    } while (0)

static int opened(int concerned, enum outcome what, int fd) {
    if (what == fail_after && fd >= 0) {
        syscall(SYS_close, fd);
        errno = plan.error;
        return -1;
    }
    return remember(fd, concerned);
}

#define OPEN(name, directory, ...)                                      \
    REAL(name);                                                         \
    mode_t mode = 0;                                                    \
    if (flags & (O_CREAT | __O_TMPFILE)) {                              \
        va_list list;                                                   \
        va_start(list, flags);                                          \
        mode = va_arg(list, mode_t);                                    \
        va_end(list);                                                   \
    }                                                                   \
    const int concerned = concerns(directory, path);                    \
    const enum outcome what = concerned ? next(faulty_opens, 0) : pass; \
    if (what == fail_before) return -1;                                 \
    return opened(concerned, what, real(__VA_ARGS__))

int open(const char *path, int flags, ...) { OPEN(open, AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { OPEN(open64, AT_FDCWD, path, flags, mode); }
int openat(int fd, const char *path, int flags, ...) { OPEN(openat, fd, fd, path, flags, mode); }
int openat64(int fd, const char *path, int flags, ...) { OPEN(openat64, fd, fd, path, flags, mode); }

int fcntl(int fd, int command, ...) {
    REAL(fcntl);
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    if ((command != F_DUPFD && command != F_DUPFD_CLOEXEC) || !known(fd)) return real(fd, command, argument);
    const enum outcome what = next(faulty_opens, 0);
    if (what == fail_before) return -1;
    return opened(1, what, real(fd, command, argument));
}

/* glibc has no openat2; programs call it like this. */
long syscall(long number, ...) {
    REAL(syscall);
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number != SYS_openat2 || !concerns((int)a[0], (const char *)a[1]))
        return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    const enum outcome what = next(faulty_opens, 0);
    if (what == fail_before) return -1;
    return opened(1, what, (int)real(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

/* Whatever close says, the descriptor is gone. */
int close(int fd) {
    REAL(close);
    const enum outcome what = known(fd) ? next(faulty_others, 0) : pass;
    remember(fd, 0);
    const int result = real(fd);
    if (what != fail_before && what != fail_after) return result;
    errno = plan.error;
    return -1;
}

#define TRANSFER(name, kind, ...)                                   \
    REAL(name);                                                     \
    const enum outcome what = known(fd) ? next(kind, bytes) : pass; \
    if (what == fail_before) return -1;                             \
    if (what == half) bytes /= 2;                                   \
    const ssize_t result = real(__VA_ARGS__);                       \
    if (what != fail_after) return result;                          \
    errno = plan.error;                                             \
    return -1

ssize_t write(int fd, const void *from, size_t bytes) { TRANSFER(write, faulty_writes, fd, from, bytes); }
ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at) {
    TRANSFER(pwrite, faulty_writes, fd, from, bytes, at);
}
ssize_t pwrite64(int fd, const void *from, size_t bytes, off64_t at) {
    TRANSFER(pwrite64, faulty_writes, fd, from, bytes, at);
}
ssize_t read(int fd, void *to, size_t bytes) { TRANSFER(read, faulty_reads, fd, to, bytes); }
ssize_t pread(int fd, void *to, size_t bytes, off_t at) { TRANSFER(pread, faulty_reads, fd, to, bytes, at); }
ssize_t pread64(int fd, void *to, size_t bytes, off64_t at) { TRANSFER(pread64, faulty_reads, fd, to, bytes, at); }

#define PLAIN(name, concerned, ...) \
    REAL(name);                     \
    CALL(faulty_others, concerned, -1, real(__VA_ARGS__))

int ftruncate(int fd, off_t length) { PLAIN(ftruncate, known(fd), fd, length); }
int ftruncate64(int fd, off64_t length) { PLAIN(ftruncate64, known(fd), fd, length); }
int fallocate(int fd, int mode, off_t at, off_t length) { PLAIN(fallocate, known(fd), fd, mode, at, length); }
int fsync(int fd) {
    REAL(fsync);
    CALL(faulty_syncs, known(fd), -1, real(fd));
}
int fdatasync(int fd) {
    REAL(fdatasync);
    CALL(faulty_syncs, known(fd), -1, real(fd));
}
int syncfs(int fd) {
    REAL(syncfs);
    CALL(faulty_syncs, known(fd), -1, real(fd));
}
int fstat(int fd, struct stat *about) { PLAIN(fstat, known(fd), fd, about); }
int fstat64(int fd, struct stat64 *about) { PLAIN(fstat64, known(fd), fd, about); }
int fstatvfs(int fd, struct statvfs *about) { PLAIN(fstatvfs, known(fd), fd, about); }
int fstatvfs64(int fd, struct statvfs64 *about) { PLAIN(fstatvfs64, known(fd), fd, about); }
int fstatfs(int fd, struct statfs *about) { PLAIN(fstatfs, known(fd), fd, about); }
int fstatfs64(int fd, struct statfs64 *about) { PLAIN(fstatfs64, known(fd), fd, about); }

int fstatat(int fd, const char *path, struct stat *about, int flags) {
    PLAIN(fstatat, concerns(fd, path), fd, path, about, flags);
}
int fstatat64(int fd, const char *path, struct stat64 *about, int flags) {
    PLAIN(fstatat64, concerns(fd, path), fd, path, about, flags);
}
int mkdirat(int fd, const char *path, mode_t mode) { PLAIN(mkdirat, concerns(fd, path), fd, path, mode); }
int unlinkat(int fd, const char *path, int flags) { PLAIN(unlinkat, concerns(fd, path), fd, path, flags); }
int renameat(int from_fd, const char *from, int to_fd, const char *to) {
    PLAIN(renameat, concerns(from_fd, from), from_fd, from, to_fd, to);
}
int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags) {
    PLAIN(renameat2, concerns(from_fd, from), from_fd, from, to_fd, to, flags);
}
int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags) {
    PLAIN(linkat, concerns(from_fd, from), from_fd, from, to_fd, to, flags);
}

DIR *fdopendir(int fd) {
    REAL(fdopendir);
    const enum outcome what = known(fd) ? next(faulty_opens, 0) : pass;
    if (what == fail_before || what == fail_after) {
        errno = plan.error;
        return NULL;
    }
    return real(fd);
}

/* Null with an error, or an entry, of which it is not said what it is, as on file systems that do not know before they
 * are asked; the end of the directory is a call like the others. */
struct dirent *readdir(DIR *stream) {
    REAL(readdir);
    const int concerned = known(dirfd(stream));
    const enum outcome what = concerned ? next(faulty_others, 0) : pass;
    if (what == fail_before || what == fail_after) {
        errno = plan.error;
        return NULL;
    }
    struct dirent *entry = real(stream);
    if (entry != NULL && concerned) entry->d_type = DT_UNKNOWN;
    return entry;
}

int closedir(DIR *stream) {
    REAL(closedir);
    const int fd = dirfd(stream);
    const enum outcome what = known(fd) ? next(faulty_others, 0) : pass;
    remember(fd, 0);
    const int result = real(stream);
    if (what != fail_before && what != fail_after) return result;
    errno = plan.error;
    return -1;
}
