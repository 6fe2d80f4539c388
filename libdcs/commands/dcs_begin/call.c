/* Frames to and from a scheduler (format: libdcs/wire/message.h), over a Unix socket or TLS. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "begin.h"

char why[1024], refusal[300];

enum outcome failed(enum outcome o, const char *format, ...) {
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

void put(unsigned char *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to[i] = (unsigned char)(value >> (8 * i));
}

uint64_t get(const unsigned char *from, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= (uint64_t)from[i] << (8 * i);
    return value;
}

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

enum outcome wait_ready(const struct line *line, short events) {
    for (;;) {
        struct pollfd one = {.fd = line->fd, .events = events};
        const double left = line->end - now();
        if (left <= 0) return failed(try_again, "the scheduler does not answer");
        const int n = poll(&one, 1, (int)(left * 1000) + 1);
        if (n > 0) return got_it;
        if (n < 0 && errno != EINTR) return failed(try_again, "waiting for the scheduler: %s", strerror(errno));
    }
}

/* The meaning of an alert by which a scheduler refuses the connection during the handshake. */
static const char *explain(unsigned long error) {
    switch (ERR_GET_REASON(error)) {
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        return "the scheduler refuses this host's certificate: it has expired (or a clock is wrong). `dcs host join` "
               "gets a new one";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return "the scheduler refuses this host's certificate: it was issued by another authority";
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
        return "the scheduler refuses this host's certificate: it is for another role than starting control programs";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
        return "the scheduler refuses this host's certificate: it is malformed or not valid yet";
    case SSL_R_WRONG_VERSION_NUMBER: return "the peer does not speak TLS, so it is not a scheduler's TLS port";
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION: return "the peer does not speak TLS 1.3";
    }
    return NULL;
}

enum outcome tls_result(const struct line *line, int result) {
    const int kind = SSL_get_error(line->ssl, result);
    const unsigned long error = ERR_peek_last_error();
    const int system = errno;
    ERR_clear_error();
    if (kind == SSL_ERROR_WANT_READ) return wait_ready(line, POLLIN);
    if (kind == SSL_ERROR_WANT_WRITE) return wait_ready(line, POLLOUT);
    if (refusal[0]) return failed(give_up, "%s", refusal);
    if (kind == SSL_ERROR_SSL && ERR_GET_REASON(error) != SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        const char *text = explain(error), *reason = ERR_reason_error_string(error);
        return text ? failed(give_up, "%s", text)
                    : failed(give_up, "TLS failed: %s", reason ? reason : "unknown error");
    }
    if (kind == SSL_ERROR_SYSCALL && system != 0)
        return failed(try_again, "the connection to the scheduler broke: %s", strerror(system));
    return failed(try_again, "the scheduler closed the connection");
}

/* Transfers all n bytes. The deadline applies to all of them together, so a slow peer cannot prolong the wait. */
static enum outcome transfer(const struct line *line, int out, unsigned char *p, size_t n) {
    while (n > 0) {
        ssize_t moved;
        enum outcome o = got_it;
        if (line->ssl) {
            moved = out ? SSL_write(line->ssl, p, (int)n) : SSL_read(line->ssl, p, (int)n);
            if (moved <= 0) o = tls_result(line, (int)moved);
        } else {
            moved = out ? send(line->fd, p, n, MSG_NOSIGNAL) : recv(line->fd, p, n, 0);
            if (moved < 0 && errno == EPIPE && out) return got_it; /* it may have said why before it went */
            if (moved < 0 && errno == EAGAIN) o = wait_ready(line, out ? POLLOUT : POLLIN);
            else if (moved == 0) o = failed(try_again, "the scheduler closed the connection");
            else if (moved < 0 && errno != EINTR)
                o = failed(try_again, "%s the scheduler: %s", out ? "sending to" : "receiving from", strerror(errno));
        }
        if (o != got_it) return o;
        if (moved > 0) p += moved, n -= (size_t)moved;
    }
    return got_it;
}

enum outcome send_frame(const struct line *line, int kind, uint64_t request, unsigned char *frame, size_t length) {
    memcpy(frame, "DCS1", 4);
    put(frame + 4, (uint64_t)kind, 2);
    put(frame + 6, protocol_version, 2);
    put(frame + 8, length, 4);
    put(frame + 12, request, 8);
    put(frame + 20, crc32c(frame + header_bytes, length), 4);
    return transfer(line, 1, frame, header_bytes + length);
}

/* Removes control bytes, because text from a peer goes to a terminal. */
static void make_plain(unsigned char *text, size_t n) {
    for (size_t i = 0; i < n; ++i)
        if (text[i] < ' ' || text[i] == 0x7f) text[i] = ' ';
}

enum outcome receive_frame(const struct line *line, int wanted, uint64_t request, unsigned char *payload,
                           size_t *length) {
    unsigned char header[header_bytes];
    enum outcome o = transfer(line, 0, header, sizeof header);
    if (o != got_it) return o;
    if (memcmp(header, "DCS1", 4) != 0) return failed(give_up, "the peer is not a DCS scheduler");
    if (get(header + 6, 2) != protocol_version)
        return failed(give_up,
                      "the scheduler speaks protocol version %d, but this program speaks %d: use the same release",
                      (int)get(header + 6, 2), protocol_version);
    *length = get(header + 8, 4);
    if (*length > reply_bytes) return failed(give_up, "the scheduler's reply is too long");
    o = transfer(line, 0, payload, *length);
    if (o != got_it) return o;
    if (crc32c(payload, *length) != get(header + 20, 4)) return failed(give_up, "the scheduler's reply is damaged");
    const int kind = (int)get(header + 4, 2);
    if (kind == kind_error && *length >= 8) {
        uint64_t text = get(payload + 4, 4);
        if (text > *length - 8) text = *length - 8;
        make_plain(payload + 8, text);
        const enum outcome for_now = get(payload, 4) == error_unreachable ? try_again : give_up;
        return failed(for_now, "the scheduler refuses: %.*s", (int)text, (const char *)payload + 8);
    }
    if (kind != wanted || get(header + 12, 8) != request)
        return failed(give_up, "the scheduler sent message %d instead of %d", kind, wanted);
    return got_it;
}
