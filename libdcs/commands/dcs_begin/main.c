/* dcs_begin [-n] [-i T] [-e T] program [arguments]: gets an authorization token from the scheduler and starts a control
 * program with it. The token travels in a sealed memory file whose descriptor the program inherits;
 * DCS_AUTH_FD tells its number. It never shows in arguments or environment.
 *
 * With one of the options the program is run by dcs_lock, which stands beside this one: not again before the time
 * after -i has elapsed, not beside a run that lasts (all that -n asks for), not longer than -e says.
 *
 * Exit status: that of the program; with options 75 busy, 79 too soon, and more of dcs_lock; 125 if dcs_begin
 * itself failed, 126 if the program cannot be executed, 127 if it was not found.
 *
 * This file speaks the protocol by hand (libdcs/wire/message.h has the frame), because it must not
 * need more than libc: it is what an administrator installs for users of other languages. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { header_bytes = 24, token_bytes = 32, ident_bytes = 64, reply_bytes = 8192, protocol_version = 4 };
enum { kind_hello = 1, kind_welcome = 2, kind_get_auth = 3, kind_auth_reply = 4, kind_error = 18 };
enum { exit_dcs_failed = 125, exit_cannot_execute = 126, exit_not_found = 127 };

/* What became of one attempt to get a token. */
enum outcome { got_it, try_again, give_up };

static char why[1024]; /* of the last attempt that failed */

static enum outcome failed(enum outcome o, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return o;
}

static uint32_t crc32c(const unsigned char *p, size_t n) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; ++i) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void put(unsigned char *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *from, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= (uint64_t)from[i] << (8 * i);
    return value;
}

static enum outcome send_frame(int fd, int kind, uint64_t request, const unsigned char *payload,
                               size_t length) {
    unsigned char frame[header_bytes + 128];
    memcpy(frame, "DCS1", 4);
    put(frame + 4, (uint64_t)kind, 2);
    put(frame + 6, protocol_version, 2);
    put(frame + 8, length, 4);
    put(frame + 12, request, 8);
    put(frame + 20, crc32c(payload, length), 4);
    memcpy(frame + header_bytes, payload, length);
    for (size_t done = 0; done < header_bytes + length;) {
        const ssize_t n = send(fd, frame + done, header_bytes + length - done, MSG_NOSIGNAL);
        if (n > 0) done += (size_t)n;
        else if (errno != EINTR) return failed(try_again, "sending to the scheduler: %s", strerror(errno));
    }
    return got_it;
}

static enum outcome read_exactly(int fd, unsigned char *to, size_t n) {
    while (n > 0) {
        const ssize_t got = recv(fd, to, n, 0);
        if (got > 0) {
            to += got;
            n -= (size_t)got;
        } else if (got == 0) {
            return failed(try_again, "the scheduler closed the connection");
        } else if (errno == EAGAIN) {
            return failed(try_again, "the scheduler does not answer");
        } else if (errno != EINTR) {
            return failed(try_again, "receiving from the scheduler: %s", strerror(errno));
        }
    }
    return got_it;
}

/* One reply of the wanted kind into `payload` (reply_bytes). An error reply's text ends up in `why`. */
static enum outcome receive_frame(int fd, int wanted, uint64_t request, unsigned char *payload,
                                  size_t *length) {
    unsigned char header[header_bytes];
    enum outcome o = read_exactly(fd, header, sizeof header);
    if (o != got_it) return o;
    if (memcmp(header, "DCS1", 4) != 0)
        return failed(give_up, "something else than a DCS scheduler listens there");
    if (get(header + 6, 2) != protocol_version)
        return failed(give_up,
                      "the scheduler speaks protocol version %d, this program %d: use the same release",
                      (int)get(header + 6, 2), protocol_version);
    *length = get(header + 8, 4);
    if (*length > reply_bytes) return failed(give_up, "the scheduler's reply is too long");
    o = read_exactly(fd, payload, *length);
    if (o != got_it) return o;
    if (crc32c(payload, *length) != get(header + 20, 4))
        return failed(give_up, "the scheduler's reply is damaged");
    const int kind = (int)get(header + 4, 2);
    if (kind == kind_error && *length >= 8) {
        uint64_t text = get(payload + 4, 4);
        if (text > *length - 8) text = *length - 8;
        return failed(give_up, "the scheduler refuses: %.*s", (int)text, (const char *)payload + 8);
    }
    if (kind != wanted || get(header + 12, 8) != request)
        return failed(give_up, "the scheduler sent message %d where %d was due", kind, wanted);
    return got_it;
}

/* Hello without a token: who we are follows from the socket. Then GetAuth{ident}. */
static enum outcome ask_for_token(int fd, const char *ident, unsigned char token[token_bytes]) {
    unsigned char payload[reply_bytes];
    size_t length = 0;
    put(payload, protocol_version, 2);
    put(payload + 2, 0, 4);
    enum outcome o = send_frame(fd, kind_hello, 1, payload, 6);
    if (o == got_it) o = receive_frame(fd, kind_welcome, 1, payload, &length);
    if (o != got_it) return o;
    const size_t n = strlen(ident);
    put(payload, n, 4);
    memcpy(payload + 4, ident, n);
    o = send_frame(fd, kind_get_auth, 2, payload, 4 + n);
    if (o == got_it) o = receive_frame(fd, kind_auth_reply, 2, payload, &length);
    if (o != got_it) return o;
    if (length != 4 + token_bytes || get(payload, 4) != token_bytes)
        return failed(give_up, "the scheduler sent a token of a wrong length");
    memcpy(token, payload + 4, token_bytes);
    explicit_bzero(payload, sizeof payload);
    return got_it;
}

/* The directory is opened first: socket addresses are short, paths need not be. */
static enum outcome connect_scheduler(const char *pool, int *fd) {
    char name[4096 + 32];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(name, sizeof name, "%s/scheduler", pool);
    const int directory = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return failed(give_up, "%s: %s; `dcs up` makes a private pool, DCS_DIR names another one", name,
                      strerror(errno));
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/user.sock", directory);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    enum outcome o = got_it;
    if (*fd < 0) o = failed(give_up, "socket: %s", strerror(errno));
    const struct timeval limit = {.tv_sec = 30};
    if (o == got_it) {
        setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        setsockopt(*fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        if (connect(*fd, (const struct sockaddr *)&address, sizeof address) != 0)
            o = failed(errno == EACCES || errno == EPERM ? give_up : try_again,
                       "no scheduler answers at %s/user.sock: %s", name, strerror(errno));
    }
    close(directory);
    return o;
}

static double patience(void) {
    const char *text = getenv("DCS_PATIENCE_S");
    char *end = NULL;
    const double s = text && *text ? strtod(text, &end) : 30;
    return end && (*end != '\0' || !(s >= 0 && s <= 1e6)) ? 30 : s;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static enum outcome get_token(const char *pool, const char *ident, unsigned char token[token_bytes]) {
    const double end = now() + patience();
    for (long pause_ms = 50;; pause_ms = pause_ms < 500 ? 2 * pause_ms : 1000) {
        int fd = -1;
        enum outcome o = connect_scheduler(pool, &fd);
        if (o == got_it) o = ask_for_token(fd, ident, token);
        if (fd >= 0) close(fd);
        if (o != try_again || now() >= end) return o;
        const struct timespec pause = {pause_ms / 1000, pause_ms % 1000 * 1000000};
        nanosleep(&pause, NULL);
    }
}

/* $DCS_DIR, else $XDG_STATE_HOME/dcs, else ~/.local/state/dcs; as dcs.h says. */
static int pool_directory(char *to, size_t size) {
    const char *dir = getenv("DCS_DIR"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n;
    if (dir && *dir) {
        if (*dir != '/') return 0;
        n = snprintf(to, size, "%s", dir);
    } else if (state && *state == '/') {
        n = snprintf(to, size, "%s/dcs", state);
    } else {
        const struct passwd *entry = home && *home == '/' ? NULL : getpwuid(geteuid());
        if (entry) home = entry->pw_dir;
        if (!home || *home != '/') return 0;
        n = snprintf(to, size, "%s/.local/state/dcs", home);
    }
    return n > 0 && (size_t)n < size;
}

/* The program's last path component, made a control ident. */
static void make_ident(const char *program, char ident[ident_bytes + 1]) {
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const char *slash = strrchr(program, '/');
    snprintf(ident, ident_bytes + 1, "%s", slash ? slash + 1 : program);
    for (char *c = ident; *c; ++c)
        if (!strchr(good, *c)) *c = '_';
    if (ident[0] == '.' || ident[0] == '-') ident[0] = '_';
    if (ident[0] == '\0') strcpy(ident, "_");
}

/* A sealed memory file with the token, open across exec, away from the standard streams. */
static int keep_token(const unsigned char token[token_bytes]) {
    const int made = memfd_create("dcs-auth", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0) return -1;
    const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    int fd = -1;
    if (write(made, token, token_bytes) == token_bytes && fcntl(made, F_ADD_SEALS, seals) == 0)
        fd = fcntl(made, F_DUPFD, 10);
    const int error = errno;
    close(made);
    errno = error;
    return fd;
}

static int help(FILE *to, int status) {
    fputs("usage: dcs_begin [-n] [-i T] [-e T] program [arguments]\n"
          "Starts a control program with an authorization token from the scheduler of the pool in DCS_DIR.\n"
          "For cron, one run of a user's program at a time:\n"
          "  -n    not while a run lasts, which goes for the other options too\n"
          "  -i T  not again before T minutes (or 90s, 2h, 1d, auto) have elapsed since the last run\n"
          "  -e T  a run that is older than T minutes is ended, also this one\n"
          "exit status: the program's; 125 DCS failed, 126 cannot be executed, 127 not found;\n"
          "  with options also 75 a run lasts, 79 too soon, 77 it may not be ended\n", to);
    return status;
}

/* What makes a start by cron safe; all NULL: nothing. */
struct guard {
    const char *no_wait, *if_elapsed, *expire_after;
};

/* The index of the program; 0: wrong options. */
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

/* Rights of this file's owner, if it was installed with any, are none of the program's business. */
static int drop_rights(void) {
    const uid_t user = getuid();
    const gid_t group = getgid();
    return (getegid() == group || setresgid(group, group, group) == 0) &&
           (geteuid() == user || setresuid(user, user, user) == 0);
}

/* The program under its lock, in this very process: a service manager sees no difference. Returns if it failed. */
static int run_guarded(const struct guard *guard, char **program) {
    char path[4096], *atom = NULL, **words = NULL;
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "dcs_lock");
    char *slash = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
    size_t count = 0, at = 0;
    while (program[count]) ++count;
    char *real = strchr(program[0], '/') ? realpath(program[0], NULL) : NULL;
    words = calloc(count + 16, sizeof *words);
    if (!slash || !words || asprintf(&atom, "begin:%s", real ? real : program[0]) < 0 || !drop_rights()) {
        fprintf(stderr, "dcs_begin: preparing the lock: %s\n", strerror(errno));
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
    fprintf(stderr, "dcs_begin: %s: %s; it is installed beside dcs_begin\n", path, strerror(errno));
    return exit_dcs_failed;
}

int main(int argc, char **argv) {
    struct guard guard = {NULL, NULL, NULL};
    if (argc > 1 && strcmp(argv[1], "--help") == 0) return help(stdout, 0);
    if (argc > 1 && strcmp(argv[1], "--version") == 0) return puts("dcs_begin " DCS_VERSION) < 0;
    const int first = take_options(argc, argv, &guard);
    if (first == 0 || argc <= first) return help(stderr, exit_dcs_failed);

    char pool[4096], ident[ident_bytes + 1], number[16];
    unsigned char token[token_bytes];
    if (!pool_directory(pool, sizeof pool)) {
        fputs("dcs_begin: where is the pool? Set DCS_DIR to its directory, as an absolute path\n", stderr);
        return exit_dcs_failed;
    }
    make_ident(argv[first], ident);
    if (get_token(pool, ident, token) != got_it) {
        fprintf(stderr, "dcs_begin: %s\n", why);
        return exit_dcs_failed;
    }
    const int fd = keep_token(token);
    explicit_bzero(token, sizeof token);
    snprintf(number, sizeof number, "%d", fd);
    if (fd < 0 || setenv("DCS_AUTH_FD", number, 1) != 0) {
        fprintf(stderr, "dcs_begin: keeping the token: %s\n", strerror(errno));
        return exit_dcs_failed;
    }
    if (guard.no_wait || guard.if_elapsed || guard.expire_after) return run_guarded(&guard, argv + first);
    execvp(argv[first], argv + first);
    const int error = errno;
    fprintf(stderr, "dcs_begin: %s: %s\n", argv[first], strerror(error));
    return error == ENOENT ? exit_not_found : exit_cannot_execute;
}
