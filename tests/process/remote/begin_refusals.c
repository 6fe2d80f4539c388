/* And calls that fail in the test build of dcs_begin, as they do where a limit, a confinement or the memory says so:
 * DCS_PLANTED names them too. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

int planted(const char *name); /* begin_plants.c */

static int refused(const char *name, int error) { return planted(name) ? errno = error, 1 : 0; }

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol) {
    return refused("no_socket", EMFILE) ? -1 : __real_socket(family, type, protocol);
}
ssize_t __real_send(int fd, const void *from, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *from, size_t n, int flags) {
    return refused("no_send", EPIPE) ? -1 : __real_send(fd, from, n, flags);
}
ssize_t __real_recv(int fd, void *to, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t n, int flags) {
    return refused("no_recv", ECONNRESET) ? -1 : __real_recv(fd, to, n, flags);
}
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n) { return refused("no_malloc", ENOMEM) ? NULL : __real_malloc(n); }
/* The first one keeps the environment of the user, the second makes the program's, the third the words of dcs_lock. */
void *__real_calloc(size_t count, size_t n);
void *__wrap_calloc(size_t count, size_t n) {
    static int calls;
    const char *const name = ++calls == 2 ? "no_environment" : calls == 3 ? "no_words" : NULL;
    return name && refused(name, ENOMEM) ? NULL : __real_calloc(count, n);
}

long __real_SSL_CTX_ctrl(SSL_CTX *tls, int what, long value, void *more);
long __wrap_SSL_CTX_ctrl(SSL_CTX *tls, int what, long value, void *more) {
    const int version = what == SSL_CTRL_SET_MIN_PROTO_VERSION || what == SSL_CTRL_SET_MAX_PROTO_VERSION;
    return version && planted("no_version") ? 0 : __real_SSL_CTX_ctrl(tls, what, value, more);
}
SSL *__real_SSL_new(SSL_CTX *tls);
SSL *__wrap_SSL_new(SSL_CTX *tls) { return planted("no_connection") ? NULL : __real_SSL_new(tls); }
int __real_i2d_PUBKEY(const EVP_PKEY *key, unsigned char **to);
int __wrap_i2d_PUBKEY(const EVP_PKEY *key, unsigned char **to) {
    return planted("no_public_key") ? -1 : __real_i2d_PUBKEY(key, to);
}
int __real_PEM_write_bio_X509(BIO *out, const X509 *x);
int __wrap_PEM_write_bio_X509(BIO *out, const X509 *x) {
    return planted("no_text") ? 0 : __real_PEM_write_bio_X509(out, x);
}
BIO *__real_BIO_new(const BIO_METHOD *kind);
BIO *__wrap_BIO_new(const BIO_METHOD *kind) { return planted("no_bio") ? NULL : __real_BIO_new(kind); }
const char *__real_ERR_reason_error_string(unsigned long error);
const char *__wrap_ERR_reason_error_string(unsigned long error) {
    return planted("no_reason") ? NULL : __real_ERR_reason_error_string(error);
}
