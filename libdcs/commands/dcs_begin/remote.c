/* A scheduler on another host. It trusts this host's certificate to identify the host, and the host to name the user.
 * Nothing in this file has privileges (see hygiene.c). */
#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "begin.h"

enum { certificate_bytes = 2048, lookup_s = 60 };
static const char group_name[] = "dcs";

struct identity {
    char user[ident_bytes + 1];
    X509 *authority;
    SSL_CTX *tls;
};

static int is_name(const char *name) {
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t n = strlen(name);
    return n > 0 && n <= ident_bytes && strspn(name, good) == n && name[0] != '.' && name[0] != '-';
}

static int is_member(const char *user, gid_t own, gid_t wanted) {
    int count = 256, size;
    gid_t *groups = NULL, *grown;
    do {
        size = count;
        grown = realloc(groups, (size_t)size * sizeof *groups);
        if (grown) groups = grown;
    } while (grown && getgrouplist(user, own, groups, &count) < 0 && count > size);
    int found = 0;
    for (int i = 0; grown && i < count && i < size; ++i) found = found || groups[i] == wanted;
    free(groups);
    return found;
}

/* The user is the owner of this process; variables and terminals are not consulted. */
static enum outcome find_user(char *name) {
    const struct passwd *entry = (errno = 0, getpwuid(getuid()));
    if (!entry)
        return failed(give_up, "uid %ld has no login name on this host%s%s", (long)getuid(), errno ? ": " : "",
                      errno ? strerror(errno) : "");
    if (!is_name(entry->pw_name))
        return failed(give_up,
                      "your login name cannot be used: it must have at most %d characters of A-Z a-z 0-9 . _ -",
                      ident_bytes);
    strcpy(name, entry->pw_name);
    const gid_t own = entry->pw_gid;
    const struct group *group = getgrnam(group_name);
    if (!group) return failed(give_up, "this host has no group %s, of which users of DCS must be members", group_name);
    if (getuid() != 0 && !is_member(name, own, group->gr_gid))
        return failed(give_up, "%s is not a member of the group %s, as users of DCS on this host must be", name,
                      group_name);
    return got_it;
}

static BIO *reading(const struct file *file) { return BIO_new_mem_buf(file->text, (int)file->length); }

static X509 *read_certificate(const struct file *file) {
    BIO *in = reading(file);
    X509 *x = in ? PEM_read_bio_X509(in, NULL, NULL, NULL) : NULL;
    BIO_free(in);
    return x;
}

static int no_password(char *to, int size, int writing, void *more) {
    (void)to, (void)size, (void)writing, (void)more;
    return 0;
}

/* A certificate of a pool has one alternative name, dcs:ROLE/NAME. */
static int has_role(X509 *x, const char *wanted) {
    GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    const GENERAL_NAME *only = sk_GENERAL_NAME_num(names) == 1 ? sk_GENERAL_NAME_value(names, 0) : NULL;
    int fits = 0;
    if (only && only->type == GEN_URI) {
        const ASN1_STRING *uri = only->d.uniformResourceIdentifier;
        const size_t n = strlen(wanted);
        fits = (size_t)ASN1_STRING_length(uri) > n && memcmp(ASN1_STRING_get0_data(uri), wanted, n) == 0;
    }
    GENERAL_NAMES_free(names);
    return fits;
}

/* As libdcs/pki/certificate.cc: no chains; the issuer must be the pool's authority itself. */
static int judge(X509 *x, X509 *authority) {
    X509 *const both[] = {x, authority};
    if (!x || i2d_X509(x, NULL) > certificate_bytes) return X509_V_ERR_CERT_REJECTED;
    if (X509_NAME_cmp(X509_get_issuer_name(x), X509_get_subject_name(authority)) != 0 ||
        X509_verify(x, X509_get0_pubkey(authority)) != 1)
        return X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
    for (int i = 0; i < 2; ++i) {
        if (X509_cmp_current_time(X509_get0_notBefore(both[i])) >= 0) return X509_V_ERR_CERT_NOT_YET_VALID;
        if (X509_cmp_current_time(X509_get0_notAfter(both[i])) <= 0) return X509_V_ERR_CERT_HAS_EXPIRED;
    }
    if (X509_check_ca(x) == 1 || X509_get_extended_key_usage(x) != XKU_SSL_SERVER || !has_role(x, "dcs:scheduler/"))
        return X509_V_ERR_INVALID_PURPOSE;
    return X509_V_OK;
}

/* Replaces OpenSSL's verification. The handshake checks that the peer has the certificate's key. */
static int verify_peer(X509_STORE_CTX *store, void *authority) {
    static const struct {
        int error;
        const char *text;
    } texts[] = {{X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, "it was issued by another authority than this pool's"},
                 {X509_V_ERR_CERT_NOT_YET_VALID, "it is not valid yet: is a clock wrong?"},
                 {X509_V_ERR_CERT_HAS_EXPIRED, "it has expired, or a clock is wrong"},
                 {X509_V_ERR_INVALID_PURPOSE, "it is not a scheduler's"}};
    const int error = judge(X509_STORE_CTX_get0_cert(store), authority);
    const char *text = "it is malformed";
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i)
        if (texts[i].error == error) text = texts[i].text;
    if (error != X509_V_OK) snprintf(refusal, sizeof refusal, "the peer's certificate is not valid: %s", text);
    X509_STORE_CTX_set_error(store, error);
    ERR_clear_error();
    return error == X509_V_OK;
}

static int settle(SSL_CTX *tls) {
    SSL_CTX_set_options(tls, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(tls, 4 * certificate_bytes);
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    return SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(tls, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set1_groups_list(tls, "X25519:P-256") == 1;
}

/* Loads the host's key into `tls`, which also presents the authority's certificate, as all parties of a pool do. */
static enum outcome use_keys(struct host *host, struct identity *self) {
    BIO *in = reading(&host->key);
    EVP_PKEY *key = in ? PEM_read_bio_PrivateKey(in, NULL, no_password, NULL) : NULL;
    X509 *own = read_certificate(&host->certificate), *shown = read_certificate(&host->authority);
    const char *wrong = NULL;
    self->authority = read_certificate(&host->authority);
    SSL_CTX_set_cert_verify_callback(self->tls, verify_peer, self->authority);
    BIO_free(in);
    if (!key) wrong = "key.pem does not contain a private key";
    else if (!own) wrong = "certificate.pem does not contain a certificate";
    else if (!shown || !self->authority) wrong = "authority.pem does not contain a certificate";
    else if (SSL_CTX_use_certificate(self->tls, own) != 1 || SSL_CTX_use_PrivateKey(self->tls, key) != 1)
        wrong = "key.pem is not the key of certificate.pem";
    else if (SSL_CTX_add_extra_chain_cert(self->tls, shown) == 1) shown = NULL; /* now owned by the context */
    EVP_PKEY_free(key);
    X509_free(own);
    X509_free(shown);
    ERR_clear_error();
    return wrong ? failed(give_up, "%s: %s; `dcs host join` replaces them", host->pki, wrong) : got_it;
}

struct identity *take_identity(struct host *host) {
    static struct identity self;
    enum outcome o = find_user(self.user);
    /* OpenSSL configuration files of the system and the user are ignored. */
    if (o == got_it && (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1 ||
                        !(self.tls = SSL_CTX_new(TLS_client_method())) || !settle(self.tls)))
        o = failed(give_up, "cannot initialise OpenSSL with TLS 1.3: out of memory?");
    if (o == got_it) o = use_keys(host, &self);
    explicit_bzero(&host->key, sizeof host->key);
    return o == got_it ? &self : NULL;
}

/* `line` for one of `left` addresses: each gets an equal share of the time that the others did not use. */
static struct line share(const struct line *line, int left) {
    struct line one = *line;
    one.end = now() + (line->end - now()) / left;
    return one;
}

static enum outcome try_address(const struct addrinfo *address, struct line *line) {
    int error = 0;
    socklen_t size = sizeof error;
    line->fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (line->fd < 0) return failed(give_up, "socket: %s", strerror(errno));
    enum outcome o = got_it;
    if (connect(line->fd, address->ai_addr, address->ai_addrlen) != 0) {
        if (errno != EINPROGRESS && errno != EINTR) error = errno;
        else if ((o = wait_ready(line, POLLOUT)) == got_it) getsockopt(line->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error) o = failed(try_again, "%s", strerror(error));
    if (o == got_it) return o;
    close(line->fd);
    line->fd = -1;
    return o;
}

static enum outcome reach(const char *scheduler, struct line *line) {
    char name[300], reason[200];
    snprintf(name, sizeof name, "%s", scheduler);
    char *colon = strrchr(name, ':'), *host = name;
    if (!colon || colon == name || colon[1] == '\0')
        return failed(give_up, "/etc/dcs/pool.conf: scheduler %s: HOST:PORT is required", scheduler);
    *colon = '\0';
    if (host[0] == '[' && colon[-1] == ']') colon[-1] = '\0', ++host;
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    limit_time(lookup_s);
    const int error = getaddrinfo(host, colon + 1, &wanted, &found);
    limit_time(0);
    if (error) return failed(try_again, "%s: the scheduler's address is not known: %s", scheduler, gai_strerror(error));
    enum outcome o = give_up;
    int left = 0;
    for (const struct addrinfo *a = found; a; a = a->ai_next) ++left;
    for (const struct addrinfo *a = found; a && o != got_it; a = a->ai_next) {
        struct line one = share(line, left--);
        o = try_address(a, &one);
        line->fd = one.fd;
    }
    freeaddrinfo(found);
    if (o == got_it) return o;
    snprintf(reason, sizeof reason, "%.*s", (int)sizeof reason - 1, why);
    return failed(o, "no scheduler answers at %s: %s", scheduler, reason);
}

static size_t put_string(unsigned char *to, const void *text, size_t n) {
    put(to, n, 4);
    memcpy(to + 4, text, n);
    return 4 + n;
}

/* BeginControl and Begun, see libdcs/wire/join_calls.h. Stores the reply in `payload`. */
static enum outcome ask(const struct line *line, const char *user, const char *ident, EVP_PKEY *key,
                        unsigned char *payload, size_t *length) {
    unsigned char request[header_bytes + 512], *at = request + header_bytes, *public_key = NULL;
    const int n = i2d_PUBKEY(key, &public_key);
    if (n <= 0 || n > 256) return failed(give_up, "OpenSSL cannot encode the public key: out of memory?");
    put(at, protocol_version, 2);
    at += 2;
    at += put_string(at, user, strlen(user));
    at += put_string(at, ident, strlen(ident));
    at += put_string(at, public_key, (size_t)n);
    OPENSSL_free(public_key);
    const enum outcome o = send_frame(line, kind_begin_control, 1, request, (size_t)(at - request) - header_bytes);
    return o == got_it ? receive_frame(line, kind_begun, 1, payload, length) : o;
}

/* The next string of a reply; NULL if there is none. */
static const unsigned char *take_string(const unsigned char **at, const unsigned char *end, size_t most, size_t *n) {
    if (end - *at < 4) return NULL;
    *n = get(*at, 4);
    const unsigned char *const text = *at + 4;
    if (*n > most || *n > (size_t)(end - text)) return NULL;
    *at = text + *n;
    return text;
}

/* The text for the program. It contains the authority that root installed on this host. */
static enum outcome write_credentials(const unsigned char *reply, size_t length, const char *scheduler, EVP_PKEY *key,
                                      X509 *authority, BIO *out) {
    size_t token_length = 0, n = 0;
    const unsigned char *at = reply, *const end = reply + length;
    const unsigned char *const token = take_string(&at, end, token_bytes, &token_length);
    const unsigned char *der = token ? take_string(&at, end, certificate_bytes, &n) : NULL;
    X509 *own = der ? d2i_X509(NULL, &der, (long)n) : NULL;
    enum outcome o = got_it;
    if (!own || token_length != token_bytes) o = failed(give_up, "the scheduler sent no token or no certificate");
    else if (X509_check_private_key(own, key) != 1)
        o = failed(give_up, "the scheduler sent a certificate for another key");
    else {
        BIO_printf(out, "DCS-CREDENTIALS 1\nscheduler %s\ntoken ", scheduler);
        for (int i = 0; i < token_bytes; ++i) BIO_printf(out, "%02x", token[i]);
        BIO_puts(out, "\n");
        if (PEM_write_bio_PKCS8PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) != 1 ||
            PEM_write_bio_X509(out, own) != 1 || PEM_write_bio_X509(out, authority) != 1)
            o = failed(give_up, "OpenSSL cannot encode the credentials: out of memory?");
    }
    X509_free(own);
    ERR_clear_error();
    return o;
}

/* One attempt at `address`; `scheduler` is the list of all addresses, which is passed to the program. */
static enum outcome attempt(struct identity *self, const char *address, const char *scheduler, const char *ident,
                            struct line line, BIO *out) {
    unsigned char payload[reply_bytes];
    size_t length = 0;
    enum outcome o = reach(address, &line);
    if (o != got_it) return o;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    line.ssl = SSL_new(self->tls);
    refusal[0] = '\0';
    if (!key || !line.ssl || SSL_set_fd(line.ssl, line.fd) != 1)
        o = failed(give_up, "OpenSSL cannot create a key or a connection: out of memory?");
    while (o == got_it) {
        ERR_clear_error();
        const int result = SSL_connect(line.ssl);
        if (result == 1) break;
        o = tls_result(&line, result);
    }
    if (o == got_it) o = ask(&line, self->user, ident, key, payload, &length);
    if (o == got_it) o = write_credentials(payload, length, scheduler, key, self->authority, out);
    explicit_bzero(payload, sizeof payload);
    SSL_free(line.ssl);
    EVP_PKEY_free(key);
    close(line.fd);
    return o;
}

/* Tries HOST:PORT[,HOST:PORT...] in order until one answers. Returns try_again if any of them may answer later. */
static enum outcome attempt_all(struct identity *self, const char *scheduler, const char *ident,
                                const struct line *line, BIO *out) {
    char list[address_bytes], *rest = list, reasons[4 * (sizeof why + 2)] = "";
    snprintf(list, sizeof list, "%s", scheduler);
    enum outcome all = give_up;
    int left = 1;
    for (const char *c = list; *c; ++c) left += *c == ',';
    for (const char *address; (address = strsep(&rest, ",")) != NULL;) {
        const enum outcome o = attempt(self, address, scheduler, ident, share(line, left--), out);
        if (o == got_it) return o;
        if (o == try_again) all = try_again;
        const size_t length = strlen(reasons);
        snprintf(reasons + length, sizeof reasons - length, "%s%s", length ? "; " : "", why);
    }
    return failed(all, "%s", reasons);
}

enum outcome begin_remotely(struct identity *self, const char *scheduler, const char *ident, double end, char **text,
                            size_t *length) {
    struct line line = {.fd = -1, .end = end};
    BIO *out = BIO_new(BIO_s_mem());
    char *bytes = NULL;
    enum outcome o = out ? attempt_all(self, scheduler, ident, &line, out) : got_it;
    *text = NULL;
    if (out && o == got_it) {
        *length = (size_t)BIO_get_mem_data(out, &bytes);
        *text = malloc(*length);
        if (*text) memcpy(*text, bytes, *length);
    }
    BIO_free(out); /* also wipes it */
    if (o == got_it) {
        SSL_CTX_free(self->tls); /* with it this host's key, which the program gets nothing of */
        self->tls = NULL;
    }
    return o == got_it && !*text ? failed(give_up, "no memory") : o;
}
