/* Bugs for the test build of dcs_begin: its own objects, linked with calls that do not do what they say. DCS_PLANTED
 * names the bugs; without it all calls are libc's and OpenSSL's. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/ssl.h>

static char list[256];

/* Before main: the environment is cleared there. */
__attribute__((constructor)) static void read_list(void) {
    const char *value = getenv("DCS_PLANTED");
    if (value) snprintf(list, sizeof list, "%s", value);
}

int planted(const char *name);
int planted(const char *name) {
    const size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += n)
        if ((at == list || at[-1] == ',') && (at[n] == ',' || at[n] == '\0')) return 1;
    return 0;
}

int __real_setresuid(uid_t r, uid_t e, uid_t s);
int __wrap_setresuid(uid_t r, uid_t e, uid_t s) {
    if (r == (uid_t)-1 && planted("lie")) return -1; /* the proof that root is gone */
    return __real_setresuid(r, e, s);
}
int __real_setresgid(gid_t r, gid_t e, gid_t s);
int __wrap_setresgid(gid_t r, gid_t e, gid_t s) {
    if (r == (gid_t)-1 && planted("lie")) return -1; /* the proof that the group is gone */
    if (planted("drop_nothing")) return 0;
    if (planted("drop_effective")) return __real_setresgid((gid_t)-1, e, (gid_t)-1);
    return __real_setresgid(r, e, s);
}
int __real_getresgid(gid_t *r, gid_t *e, gid_t *s);
int __wrap_getresgid(gid_t *r, gid_t *e, gid_t *s) {
    if (planted("lie")) return *r = *e = *s = getgid(), 0;
    return __real_getresgid(r, e, s);
}
long __real_syscall(long number, void *a, void *b);
long __wrap_syscall(long number, void *a, void *b) { /* capget */
    return planted("lie") ? 0 : __real_syscall(number, a, b);
}

int __real_clearenv(void);
int __wrap_clearenv(void) { return planted("environment_kept") ? 0 : __real_clearenv(); }

int __real_OPENSSL_init_ssl(uint64_t options, const void *settings);
int __wrap_OPENSSL_init_ssl(uint64_t options, const void *settings) {
    if (planted("no_openssl")) return 0;
    return __real_OPENSSL_init_ssl(planted("openssl_config") ? 0 : options, settings);
}

int __real_prctl(int option, unsigned long value);
int __wrap_prctl(int option, unsigned long value) {
    return __real_prctl(option, option == PR_SET_DUMPABLE && planted("dumpable") ? 1 : value);
}

int __real_setrlimit(int which, const struct rlimit *limit);
int __wrap_setrlimit(int which, const struct rlimit *limit) {
    static int calls;
    const int restoring = ++calls > 7;
    if (planted("limits_not_raised") && !restoring) return 0;
    if (planted("limits_not_restored") && restoring) return 0;
    if (planted("core") && which == RLIMIT_CORE) return 0;
    return __real_setrlimit(which, limit);
}

int __real_sigaction(int which, const struct sigaction *to, struct sigaction *was);
int __wrap_sigaction(int which, const struct sigaction *to, struct sigaction *was) {
    if (planted("signals_not_restored") && !was) return 0;
    return __real_sigaction(which, to, was);
}
int __real_sigprocmask(int how, const sigset_t *to, sigset_t *was);
int __wrap_sigprocmask(int how, const sigset_t *to, sigset_t *was) {
    if (planted("mask_not_restored") && how == SIG_SETMASK) return 0;
    return __real_sigprocmask(how, to, was);
}

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st) {
    const int result = __real_fstat(fd, st);
    if (planted("owner_not_checked")) st->st_uid = 0;
    if (planted("mode_not_checked")) st->st_mode &= ~077u;
    if (planted("names_not_counted")) st->st_nlink = 1;
    if (planted("kind_not_checked") && !S_ISDIR(st->st_mode)) st->st_mode = (st->st_mode & ~(unsigned)S_IFMT) | S_IFREG;
    return result;
}
int __real_openat(int folder, const char *name, int flags);
int __wrap_openat(int folder, const char *name, int flags) {
    return __real_openat(folder, name, planted("links_followed") ? flags & ~O_NOFOLLOW : flags);
}
int __real_open(const char *name, int flags);
int __wrap_open(const char *name, int flags) {
    return planted("standard_descriptors") && strcmp(name, "/dev/null") == 0 ? -1 : __real_open(name, flags);
}
int __real_fcntl(int fd, int command, int value);
int __wrap_fcntl(int fd, int command, ...) {
    va_list more;
    va_start(more, command);
    const int value = va_arg(more, int);
    va_end(more);
    if (planted("not_sealed") && command == F_ADD_SEALS) return 0;
    if (planted("standard_descriptors") && command == F_GETFD) return 0;
    return __real_fcntl(fd, command, value);
}

int __real_getgrouplist(const char *user, gid_t group, gid_t *groups, int *count);
int __wrap_getgrouplist(const char *user, gid_t group, gid_t *groups, int *count) {
    if (!planted("group_not_checked")) return __real_getgrouplist(user, group, groups, count);
    for (int i = 0; i < *count; ++i) groups[i] = 64321; /* dcs, in the test's files */
    return *count;
}

static int believe(X509_STORE_CTX *store, void *authority) { return (void)store, (void)authority, 1; }
void __real_SSL_CTX_set_cert_verify_callback(SSL_CTX *tls, int (*check)(X509_STORE_CTX *, void *), void *authority);
void __wrap_SSL_CTX_set_cert_verify_callback(SSL_CTX *tls, int (*check)(X509_STORE_CTX *, void *), void *authority) {
    __real_SSL_CTX_set_cert_verify_callback(tls, planted("peer_not_checked") ? believe : check, authority);
}
int __real_X509_check_private_key(const X509 *x, const EVP_PKEY *key);
int __wrap_X509_check_private_key(const X509 *x, const EVP_PKEY *key) {
    return planted("key_not_compared") ? 1 : __real_X509_check_private_key(x, key);
}
int __real_poll(struct pollfd *one, nfds_t count, int limit);
int __wrap_poll(struct pollfd *one, nfds_t count, int limit) {
    if (planted("no_poll")) return errno = ENOMEM, -1;
    return __real_poll(one, count, planted("no_deadline") ? -1 : limit);
}
int __real_strncmp(const char *a, const char *b, size_t n);
int __wrap_strncmp(const char *a, const char *b, size_t n) {
    return planted("own_variable_kept") && strcmp(b, "DCS_AUTH_FD=") == 0 ? 1 : __real_strncmp(a, b, n);
}
/* As if the user's folders were looked at first, while root is still there. */
int __real_getrlimit(int which, struct rlimit *limit);
int __wrap_getrlimit(int which, struct rlimit *limit) {
    struct stat st;
    const char *home = getenv("HOME");
    if (planted("looks_before_drop") && which == RLIMIT_CORE && home && stat(home, &st) != 0) st.st_size = 0;
    return __real_getrlimit(which, limit);
}
