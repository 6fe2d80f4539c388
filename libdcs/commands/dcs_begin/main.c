/* dcs_begin [-n] [-i T] [-e T] program [arguments]: gets an authorization token from the scheduler and starts a control
 * program with it. The token is passed in a sealed memory file whose descriptor the program inherits;
 * DCS_AUTH_FD contains its number. The token never appears in arguments or environment.
 *
 * With one of the options the program is run by dcs_lock, which is installed beside dcs_begin: not before the time
 * of -i has elapsed, not while another run lasts (the only effect of -n), and no longer than -e permits.
 *
 * Exit status: that of the program; with options 75 busy, 79 too soon, and others of dcs_lock; 125 if dcs_begin
 * itself failed, 126 if the program cannot be executed, 127 if it was not found.
 *
 * The scheduler of a private pool, or of this host, is asked over its Unix socket, which identifies the user. A
 * scheduler on another host is asked over TLS with this host's key, which only root and the group dcs-key can read:
 * there dcs_begin is installed setgid for that group (see hygiene.c).
 *
 * call.c implements the protocol without libdcs, so that dcs_begin needs only libc and OpenSSL: administrators install
 * it for users of other languages, and review it before they make it setgid. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "begin.h"

enum { attempt_s = 30, least_attempt_s = 5, wondering_s = 3 };
/* This process has the host's key while it waits. */
static const double most_patience_remote_s = 3600;

/* Hello without a token: the socket identifies the user. Then GetAuth{ident}. */
static enum outcome ask_for_token(const struct line *line, const char *ident, unsigned char token[token_bytes]) {
    unsigned char request[header_bytes + 4 + ident_bytes], *const at = request + header_bytes, payload[reply_bytes];
    size_t length = 0;
    put(at, protocol_version, 2);
    put(at + 2, 0, 4);
    enum outcome o = send_frame(line, kind_hello, 1, request, 6);
    if (o == got_it) o = receive_frame(line, kind_welcome, 1, payload, &length);
    if (o != got_it) return o;
    const size_t n = strlen(ident);
    put(at, n, 4);
    memcpy(at + 4, ident, n);
    o = send_frame(line, kind_get_auth, 2, request, 4 + n);
    if (o == got_it) o = receive_frame(line, kind_auth_reply, 2, payload, &length);
    if (o != got_it) return o;
    if (length != 4 + token_bytes || get(payload, 4) != token_bytes)
        return failed(give_up, "the scheduler sent a token of the wrong length");
    memcpy(token, payload + 4, token_bytes);
    explicit_bzero(payload, sizeof payload);
    return got_it;
}

/* A hint for a socket that refuses access. */
static const char *who_may(int error, const char *path) {
    static char text[128];
    struct stat st;
    if (error != EACCES || stat(path, &st) != 0 || (st.st_mode & 070) == 0) return "";
    const struct group *group = getgrgid(st.st_gid);
    const char *name = group ? group->gr_name : "that it belongs to";
    snprintf(text, sizeof text, " (only members of the group %.64s may use it)", name);
    return text;
}

/* Where processes connect without end the queue of the socket is full, and who waits in it gets a place. */
static int connect_in_turn(int fd, const struct sockaddr_un *address) {
    const struct timeval wait = {1, 0};
    int result = connect(fd, (const struct sockaddr *)address, sizeof *address);
    if (result != 0 && errno == EAGAIN && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) == 0) {
        fcntl(fd, F_SETFL, 0);
        result = connect(fd, (const struct sockaddr *)address, sizeof *address);
        const int error = errno;
        fcntl(fd, F_SETFL, O_NONBLOCK);
        errno = error;
    }
    return result;
}

/* Opens the directory first, because a path may be too long for a socket address. */
static enum outcome connect_scheduler(const char *pool, struct line *line) {
    char name[path_bytes + 32];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(name, sizeof name, "%s/scheduler", pool);
    const int directory = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return failed(give_up, "%s: %s; `dcs up` makes a private pool, DCS_DIR names another one", name,
                      strerror(errno));
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/user.sock", directory);
    line->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    enum outcome o = got_it;
    if (line->fd < 0) o = failed(give_up, "socket: %s", strerror(errno));
    else if (connect_in_turn(line->fd, &address) != 0) {
        const int error = errno;
        o = failed(error == EACCES || error == EPERM ? give_up : try_again,
                   "no scheduler answers at %s/user.sock: %s%s", name, strerror(error),
                   who_may(error, address.sun_path));
    }
    close(directory);
    return o;
}

static double patience(void) {
    const char *text = user_variable("DCS_PATIENCE_S");
    char *end = NULL;
    const double s = text && *text ? strtod(text, &end) : 30;
    return end && (*end != '\0' || !(s >= 0 && s <= 1e6)) ? 30 : s;
}

/* Where the scheduler is, and how to call it. */
struct pool {
    char dir[path_bytes];  /* its directory, on this host */
    const char *scheduler; /* or its address */
    struct identity *self; /* and the identity to use there */
};

static enum outcome ask_once(const struct pool *pool, const char *ident, double end, char **text, size_t *length) {
    if (pool->scheduler) return begin_remotely(pool->self, pool->scheduler, ident, end, text, length);
    struct line line = {.fd = -1, .end = end};
    *length = token_bytes;
    *text = malloc(token_bytes);
    enum outcome o = *text ? connect_scheduler(pool->dir, &line) : failed(give_up, "no memory");
    if (o == got_it) o = ask_for_token(&line, ident, (unsigned char *)*text);
    if (line.fd >= 0) close(line.fd);
    if (o != got_it) free(*text);
    return o;
}

/* Repeats until there is an answer or patience is over; each attempt has a minimum time. */
static enum outcome ask_for_credentials(const struct pool *pool, const char *ident, char **text, size_t *length) {
    double most = patience();
    if (pool->scheduler && most > most_patience_remote_s) most = most_patience_remote_s;
    const double end = now() + most;
    double tells = now() + wondering_s;
    for (long pause_ms = 50;; pause_ms = pause_ms < 500 ? 2 * pause_ms : 1000) {
        double limit = end > now() + attempt_s ? now() + attempt_s : end;
        if (limit < now() + least_attempt_s) limit = now() + least_attempt_s;
        const enum outcome o = ask_once(pool, ident, limit, text, length);
        if (o != try_again || now() >= end) return o;
        if (now() >= tells) {
            fprintf(stderr, "dcs_begin: waiting for the scheduler: %s; gives up in %.0f s\n", why, end - now());
            tells = end;
        }
        const struct timespec pause = {pause_ms / 1000, pause_ms % 1000 * 1000000};
        nanosleep(&pause, NULL);
    }
}

/* The user's private pool in its default place, as in dcs.h. */
static int private_pool(char *to) {
    const char *state = user_variable("XDG_STATE_HOME"), *home = user_variable("HOME");
    int n;
    if (state && *state == '/') {
        n = snprintf(to, path_bytes, "%s/dcs", state);
    } else {
        const struct passwd *entry = home && *home == '/' ? NULL : getpwuid(getuid());
        if (entry) home = entry->pw_dir;
        if (!home || *home != '/') return 0;
        n = snprintf(to, path_bytes, "%s/.local/state/dcs", home);
    }
    return n > 0 && n < path_bytes;
}

static int holds_pool(const char *dir) {
    char name[path_bytes + 16];
    struct stat st;
    snprintf(name, sizeof name, "%s/scheduler", dir);
    return stat(name, &st) == 0 && S_ISDIR(st.st_mode);
}

static enum outcome no_pool(void) {
    return failed(give_up, "no pool is configured: set DCS_DIR to the absolute path of its directory");
}

/* $DCS_DIR, else the user's private pool if there is one, else the pool in /etc/dcs/pool.conf: the same rule as in
 * libdcs/client/pool_path.h, by which the program finds its pool. */
static enum outcome find_pool(struct host *host, const char *named, struct pool *pool) {
    if (named) {
        const size_t n = strlen(named);
        if (*named != '/' || n >= path_bytes) return no_pool();
        memcpy(pool->dir, named, n + 1);
        return got_it;
    }
    const int known = private_pool(pool->dir);
    if (known && holds_pool(pool->dir)) return got_it;
    if (host->dir[0] && !host->wrong[0]) return strcpy(pool->dir, host->dir), got_it;
    if (!host->scheduler[0]) {
        if (access("/etc/dcs/pool.conf", F_OK) == 0)
            return failed(give_up, "%s", host->wrong[0] ? host->wrong : "/etc/dcs/pool.conf names no scheduler");
        return known ? got_it : no_pool(); /* the connection reports what is missing */
    }
    if (host->wrong[0]) return failed(give_up, "%s", host->wrong);
    if (host->key.length == 0)
        return failed(give_up,
                      "the scheduler is on another host, %s, and only the group dcs-key can read the key of this "
                      "one: install dcs_begin owned by root and that group, mode 2755, on a file system without nosuid "
                      "(debuggers and no_new_privs remove the privilege, too)",
                      host->scheduler);
    pool->scheduler = host->scheduler;
    pool->self = take_identity(host);
    return pool->self ? got_it : give_up;
}

/* Converts the program's last path component to a control ident. */
static void make_ident(const char *program, char ident[ident_bytes + 1]) {
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const char *slash = strrchr(program, '/');
    snprintf(ident, ident_bytes + 1, "%s", slash ? slash + 1 : program);
    for (char *c = ident; *c; ++c)
        if (!strchr(good, *c)) *c = '_';
    if (ident[0] == '.' || ident[0] == '-') ident[0] = '_';
    if (ident[0] == '\0') strcpy(ident, "_");
}

/* A sealed memory file, open across exec, away from the standard streams. */
static int keep(const char *text, size_t length) {
    const int made = memfd_create("dcs-auth", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0) return -1;
    const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    int fd = -1;
    if (write(made, text, length) == (ssize_t)length && fcntl(made, F_ADD_SEALS, seals) == 0)
        fd = fcntl(made, F_DUPFD, 10);
    const int error = errno;
    close(made);
    errno = error;
    return fd;
}

static int help(FILE *to, int status) {
    fputs(
        "usage: dcs_begin [-n] [-i T] [-e T] program [arguments]\n"
        "Starts a control program with credentials from the scheduler: of the pool in DCS_DIR, else of the user's\n"
        "private pool, else of this host's pool (/etc/dcs/pool.conf).\n"
        "For cron, one run of a user's program at a time:\n"
        "  -n    not while another run lasts; the other options imply this\n"
        "  -i T  not before T (90s, 2h, 1d, auto; a number alone: minutes) has elapsed since the last run\n"
        "  -e T  end a run that is older than T (a number alone: minutes), also this one\n"
        "exit status: the program's; 125 DCS failed, 126 cannot be executed, 127 not found;\n"
        "  with options also 75 another run lasts, 79 too soon, 77 that run may not be ended\n",
        to);
    return status;
}

/* The lock options; all NULL: no lock. */
struct guard {
    const char *no_wait, *if_elapsed, *expire_after;
};

/* The index of the program; 0: invalid options. */
static int take_options(int argc, char **argv, struct guard *guard) {
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; ++i) {
        if (strcmp(argv[i], "--") == 0) return i + 1;
        if (strcmp(argv[i], "-n") == 0) guard->no_wait = argv[i];
        else if (strcmp(argv[i], "-i") == 0 && i + 1 < argc) guard->if_elapsed = argv[++i];
        else if (strcmp(argv[i], "-e") == 0 && i + 1 < argc) guard->expire_after = argv[++i];
        else return 0;
    }
    return i;
}

static int is_interpreter(const char *program) {
    static const char *const names[] = {"bash", "dash",   "env",     "julia", "node", "perl",
                                        "php",  "python", "Rscript", "ruby",  "sh"};
    const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        const size_t n = strlen(names[i]);
        if (strncmp(name, names[i], n) == 0 && strspn(name + n, "0123456789.") == strlen(name + n)) return 1;
    }
    return 0;
}

/* The program, and its script where it is an interpreter: other scripts have other locks. NULL: no memory. */
static char *lock_name(char **program) {
    char *atom = NULL, *real = strchr(program[0], '/') ? realpath(program[0], NULL) : NULL, *script = NULL;
    for (char **word = program + 1; *word && !script && is_interpreter(program[0]); ++word)
        if (**word != '-') script = realpath(*word, NULL);
    if (asprintf(&atom, "begin:%s%s%s", real ? real : program[0], script ? " " : "", script ? script : "") < 0)
        atom = NULL;
    free(real);
    free(script);
    return atom;
}

/* Replaces this process by dcs_lock with the program, so a service manager sees one process. Returns on failure. */
static int run_guarded(const struct guard *guard, char **program) {
    char path[path_bytes + sizeof "dcs_lock"], *atom = lock_name(program), **words = NULL;
    const ssize_t n = readlink("/proc/self/exe", path, path_bytes);
    char *slash = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
    size_t count = 0, at = 0;
    while (program[count]) ++count;
    words = calloc(count + 16, sizeof *words);
    if (!slash || !words || !atom) {
        fprintf(stderr, "dcs_begin: cannot prepare the lock: %s\n", strerror(errno));
        return exit_dcs_failed;
    }
    strcpy(slash + 1, "dcs_lock");
    words[at++] = path;
    words[at++] = "--keep=exec";
    if (guard->no_wait) words[at++] = "-n";
    if (guard->if_elapsed) words[at++] = "-i", words[at++] = (char *)guard->if_elapsed;
    if (guard->expire_after) words[at++] = "-e", words[at++] = (char *)guard->expire_after;
    words[at++] = "-a";
    words[at++] = atom;
    words[at++] = "--";
    memcpy(words + at, program, count * sizeof *words);
    execv(path, words);
    fprintf(stderr, "dcs_begin: %s: %s; it must be installed beside dcs_begin\n", path, strerror(errno));
    return exit_dcs_failed;
}

/* Sets DCS_AUTH_FD and restores the user's environment, limits and signals. */
static int hand_over(char *text, size_t length) {
    static char own[32];
    const int fd = keep(text, length);
    explicit_bzero(text, length);
    snprintf(own, sizeof own, "DCS_AUTH_FD=%d", fd);
    char **variables = fd >= 0 ? user_environment(own) : NULL;
    if (!variables) {
        fprintf(stderr, "dcs_begin: cannot keep the credentials: %s\n", strerror(errno));
        return 0;
    }
    environ = variables;
    restore();
    return 1;
}

int main(int argc, char **argv) {
    static struct host host;
    struct guard guard = {NULL, NULL, NULL};
    prepare(argc, argv);
    const char *named = user_variable("DCS_DIR");
    if (named && !*named) named = NULL;
    if (!named) read_host(&host);
    drop_for_good();

    if (argc > 1 && strcmp(argv[1], "--help") == 0) return help(stdout, 0);
    if (argc > 1 && strcmp(argv[1], "--version") == 0) return puts("dcs_begin " DCS_VERSION) < 0;
    const int first = take_options(argc, argv, &guard);
    if (first == 0 || argc <= first) return help(stderr, exit_dcs_failed);

    static struct pool pool;
    char ident[ident_bytes + 1], *text = NULL;
    size_t length = 0;
    make_ident(argv[first], ident);
    enum outcome o = find_pool(&host, named, &pool);
    explicit_bzero(&host.key, sizeof host.key);
    if (o == got_it) o = ask_for_credentials(&pool, ident, &text, &length);
    if (o != got_it) {
        fprintf(stderr, "dcs_begin: %s\n", why);
        return exit_dcs_failed;
    }
    if (!hand_over(text, length)) return exit_dcs_failed;
    if (guard.no_wait || guard.if_elapsed || guard.expire_after) return run_guarded(&guard, argv + first);
    execvp(argv[first], argv + first);
    const int error = errno;
    fprintf(stderr, "dcs_begin: %s: %s\n", argv[first], strerror(error));
    return error == ENOENT ? exit_not_found : exit_cannot_execute;
}
