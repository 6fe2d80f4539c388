/* The precautions that allow dcs_begin to be setgid for the group that may read the host's key. The caller chooses its
 * environment, descriptors, limits, signals, working directory and arguments. Therefore:
 *
 * - The part with that group is read_host(): it opens and reads four files that belong to root, whose names are fixed
 *   or come from root's configuration. It parses nothing else, uses no library but libc, writes nothing, and does not
 *   communicate. The group can read the key and do nothing else: an error anywhere gives no root privileges.
 * - Then the group is dropped permanently. Names chosen by the user, the network, TLS and the user database are
 *   handled with the user's privileges. An error there can expose the host's key, which the process has at that time.
 * - The host's key is in the memory of a process of the user while the scheduler is asked. The process is not dumpable,
 *   so only root can trace it, read its memory, or get its descriptors (ptrace(2), process_vm_readv(2) and
 *   pidfd_getfd(2) require the same permission). The exec of the user's program discards that memory.
 *
 * Left unchanged, because nothing here depends on it: other descriptors (the program gets those that a shell
 * opened for it), ignored and blocked signals, the umask (no file is created), groups (a user who gave some up does not
 * get them back). */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "begin.h"

#ifdef __SANITIZE_ADDRESS__
/* The leak checker works by tracing, and this process must not be traced. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
#endif

static char **users; /* environment */

/* The loader removes variables such as LD_LIBRARY_PATH and TMPDIR from a setuid program's environment, but the user's
 * program must get them. The kernel stores all strings in a row, between those of argv and the file's name. */
static void keep_environment(int argc, char **argv) {
    char *const end = (char *)getauxval(AT_EXECFN);
    char *const begin = argc > 0 ? argv[argc - 1] + strlen(argv[argc - 1]) + 1 : NULL;
    char *at = begin;
    size_t count = 0;
    while (begin && end && at < end) at += strlen(at) + 1, ++count;
    if (begin && at == end && (users = calloc(count + 1, sizeof *users)) != NULL) {
        at = begin;
        for (size_t i = 0; i < count; ++i, at += strlen(at) + 1) users[i] = at;
    } else {
        users = environ;
    }
    /* Libraries must not read it. */
    clearenv();
}

const char *user_variable(const char *name) {
    const size_t n = strlen(name);
    for (char **v = users; v && *v; ++v)
        if (strncmp(*v, name, n) == 0 && (*v)[n] == '=') return *v + n + 1;
    return NULL;
}

char **user_environment(const char *own) {
    static const char name[] = "DCS_AUTH_FD=";
    size_t count = 0, kept = 0;
    while (users && users[count]) ++count;
    char **all = calloc(count + 2, sizeof *all);
    if (!all) return NULL;
    for (size_t i = 0; i < count; ++i)
        if (strncmp(users[i], name, sizeof name - 1) != 0) all[kept++] = users[i];
    all[kept] = (char *)own;
    return all;
}

/* Raises soft limits as far as the user could; a limit that is still too low shows as an error. */
static const int raised[] = {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_STACK, RLIMIT_DATA, RLIMIT_AS};
enum { limits = sizeof raised / sizeof *raised };
static struct rlimit limit_was[limits], core_was;
static struct sigaction pipe_was, size_was;

static void raise_limits(void) {
    for (int i = 0; i < limits; ++i) {
        if (getrlimit(raised[i], &limit_was[i]) != 0) continue;
        const struct rlimit all = {limit_was[i].rlim_max, limit_was[i].rlim_max};
        setrlimit(raised[i], &all);
    }
    if (getrlimit(RLIMIT_CORE, &core_was) == 0) {
        const struct rlimit none = {0, core_was.rlim_max};
        setrlimit(RLIMIT_CORE, &none);
    }
}

void prepare(int argc, char **argv) {
    raise_limits();
    /* Otherwise messages could be written to a file or socket of this program. The user's program finds them closed. */
    for (int fd = 0; fd < 3; ++fd)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd && errno != EMFILE)
            _exit(exit_dcs_failed);
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignored, &pipe_was);
    sigaction(SIGXFSZ, &ignored, &size_was);
    prctl(PR_SET_DUMPABLE, 0);
    keep_environment(argc, argv);
}

void restore(void) {
    for (int i = 0; i < limits; ++i) setrlimit(raised[i], &limit_was[i]);
    setrlimit(RLIMIT_CORE, &core_was);
    sigaction(SIGPIPE, &pipe_was, NULL);
    sigaction(SIGXFSZ, &size_was, NULL);
}

/* Opens a directory in which, and above which, only root can replace anything. */
static int open_folder(const char *path, struct host *host) {
    int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (const char *rest = path; at >= 0;) {
        struct stat st;
        if (fstat(at, &st) != 0) break;
        if (st.st_uid != 0 || (st.st_mode & 022) != 0) {
            snprintf(host->wrong, sizeof host->wrong,
                     "%s: a user other than root can write this directory or one above it, and could replace its "
                     "content",
                     path);
            close(at);
            return -1;
        }
        while (*rest == '/') ++rest;
        if (*rest == '\0') return at;
        char part[256];
        const size_t n = strcspn(rest, "/");
        snprintf(part, sizeof part, "%.*s", (int)n, rest);
        rest += n;
        const int next = openat(at, n < sizeof part ? part : "", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        const int error = errno;
        close(at);
        errno = error;
        at = next;
    }
    snprintf(host->wrong, sizeof host->wrong, "%s: %s (links are not followed)", path, strerror(errno));
    return -1;
}

static int privileged(void) { return geteuid() == 0 || getegid() != getgid(); }

/* Why a file of this host's identity cannot be opened. */
static const char *not_shared(int error, const char *name) {
    if (error != EACCES || !privileged() || strcmp(name, "pool.conf") == 0) return strerror(error);
    return "Permission denied: the group dcs-key cannot read it, as on a host that joined before that group existed. "
           "As root, repeat `dcs host join`; or chgrp dcs-key and chmod 710 the directory, chgrp dcs-key and chmod 640 "
           "the files in it";
}

/* Reads a file that only root can write and, if `secret`, only root and the group of this program can read. */
static int read_file(int folder, const char *path, const char *name, int secret, struct host *host, struct file *file) {
    struct stat st = {0};
    const gid_t reader = getegid();
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const char *problem = NULL;
    if (fd < 0 || fstat(fd, &st) != 0) {
        problem = not_shared(errno, name);
    } else if (!S_ISREG(st.st_mode) || st.st_nlink != 1) {
        problem = "it is not a regular file with one link";
    } else if (st.st_uid != 0 || (st.st_mode & 022) != 0) {
        problem = "users other than root can write it: chown root, chmod go-w";
    } else if (secret && ((st.st_mode & 037) != 0 || ((st.st_mode & 040) != 0 && st.st_gid != reader))) {
        problem = "users can read this key: make a new one or, if it was not read, chgrp dcs-key, chmod 640";
    } else {
        for (ssize_t n = 1; n != 0 && !problem && file->length <= file_bytes; file->length += n > 0 ? (size_t)n : 0) {
            n = read(fd, file->text + file->length, file_bytes + 1 - file->length);
            if (n < 0 && errno != EINTR) problem = strerror(errno);
        }
        if (file->length > file_bytes) problem = "it is too long";
    }
    if (fd >= 0) close(fd);
    if (!problem) file->text[file->length] = '\0';
    else snprintf(host->wrong, sizeof host->wrong, "%s/%s: %s", path, name, problem);
    return problem == NULL;
}

/* A word and its value; '#' begins a comment. */
static int take_line(char *line, struct host *host) {
    static const char blanks[] = " \t\r";
    const struct {
        const char *word;
        char *to;
        size_t size;
    } known[] = {{"scheduler", host->scheduler, sizeof host->scheduler},
                 {"pki", host->pki, sizeof host->pki},
                 {"dir", host->dir, sizeof host->dir}};
    line[strcspn(line, "#")] = '\0';
    const char *const word = strtok(line, blanks), *const value = strtok(NULL, blanks);
    if (!word) return 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
        if (strcmp(word, known[i].word) != 0) continue;
        if (!value || strtok(NULL, blanks) || known[i].to[0] != '\0' || strlen(value) >= known[i].size) return 0;
        if (i > 0 && value[0] != '/') return 0;
        strcpy(known[i].to, value);
        return 1;
    }
    return 0;
}

static int read_conf(char *text, struct host *host) {
    int number = 1;
    for (char *line; (line = strsep(&text, "\n")) != NULL; ++number)
        if (!take_line(line, host)) {
            snprintf(host->wrong, sizeof host->wrong,
                     "/etc/dcs/pool.conf, line %d: expected `scheduler HOST:PORT[,HOST:PORT]`, `pki DIR` or `dir "
                     "DIR`, each once, with absolute paths",
                     number);
            return 0;
        }
    return 1;
}

void read_host(struct host *host) {
    static struct file conf;
    const int folder = open_folder("/etc/dcs", host);
    if (folder < 0) return;
    const int good = read_file(folder, "/etc/dcs", "pool.conf", 0, host, &conf) && read_conf(conf.text, host);
    close(folder);
    if (!good || !privileged() || host->dir[0] != '\0' || host->scheduler[0] == '\0') return;
    if (host->pki[0] == '\0') strcpy(host->pki, "/etc/dcs/pki");
    const int pki = open_folder(host->pki, host);
    if (pki < 0) return;
    if (read_file(pki, host->pki, "certificate.pem", 0, host, &host->certificate) &&
        read_file(pki, host->pki, "authority.pem", 0, host, &host->authority))
        read_file(pki, host->pki, "key.pem", 1, host, &host->key);
    close(pki);
}

static int has_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0) return 1;
    return (data[0].effective | data[0].permitted | data[1].effective | data[1].permitted) != 0;
}

void drop_for_good(void) {
    const uid_t user = getuid();
    const gid_t group = getgid(), had = getegid();
    const int had_more = geteuid() != user || had != group;
    uid_t r = 0, e = 0, s = 0;
    gid_t gr = 0, ge = 0, gs = 0;
    int good = setresgid(group, group, group) == 0 && setresuid(user, user, user) == 0;
    good = good && getresuid(&r, &e, &s) == 0 && getresgid(&gr, &ge, &gs) == 0;
    good = good && r == user && e == user && s == user && gr == group && ge == group && gs == group;
    if (user != 0) good = good && setresuid((uid_t)-1, 0, (uid_t)-1) != 0 && !(had_more && has_capabilities());
    if (user != 0 && had != group) good = good && setresgid((gid_t)-1, had, (gid_t)-1) != 0;
    /* No message: it would go to the user's descriptors while this may still have privileges. */
    if (!good) _exit(exit_dcs_failed);
    /* Again: the kernel resets it to fs.suid_dumpable when privileges are dropped. */
    prctl(PR_SET_DUMPABLE, 0);
}

static struct itimerval timer_was;
static struct sigaction alarm_was;
static sigset_t mask_was;
static double limited_at;

static void too_slow(int signal_number) {
    static const char text[] =
        "dcs_begin: looking up the scheduler's address takes too long; check the name service of this host\n";
    (void)signal_number;
    if (write(2, text, sizeof text - 1) < 0) _exit(exit_dcs_failed);
    _exit(exit_dcs_failed);
}

/* An alarm that the user set earlier is kept for the program, delayed by the time spent here. */
void limit_time(int seconds) {
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGALRM);
    if (seconds > 0) {
        const struct sigaction end = {.sa_handler = too_slow};
        const struct itimerval limit = {.it_value.tv_sec = seconds};
        limited_at = now();
        setitimer(ITIMER_REAL, &limit, &timer_was);
        sigaction(SIGALRM, &end, &alarm_was);
        sigprocmask(SIG_UNBLOCK, &ours, &mask_was);
        return;
    }
    const struct itimerval none = {{0}};
    setitimer(ITIMER_REAL, &none, NULL);
    sigprocmask(SIG_SETMASK, &mask_was, NULL);
    sigaction(SIGALRM, &alarm_was, NULL);
    if (timer_was.it_value.tv_sec == 0 && timer_was.it_value.tv_usec == 0) return;
    const double was = (double)timer_was.it_value.tv_sec + (double)timer_was.it_value.tv_usec / 1e6;
    const double left = was - (now() - limited_at);
    timer_was.it_value.tv_sec = left > 0 ? (time_t)left : 0;
    timer_was.it_value.tv_usec = left > 0 ? (suseconds_t)((left - (double)(time_t)left) * 1e6) + 1 : 1;
    if (timer_was.it_value.tv_usec > 999999) timer_was.it_value.tv_usec = 999999;
    setitimer(ITIMER_REAL, &timer_was, NULL);
}
