/* The interfaces between the parts of dcs_begin. main.c: finds the pool and starts the program; hygiene.c: makes it
 * safe to install the file setgid; call.c: frames; remote.c: a scheduler on another host. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { token_bytes = 32, ident_bytes = 64, reply_bytes = 8192, protocol_version = 8 };
enum {
    kind_hello = 1,
    kind_welcome = 2,
    kind_get_auth = 3,
    kind_auth_reply = 4,
    kind_error = 18,
    error_unreachable = 1, /* its code: it cannot find out for now who calls */
    kind_begin_control = 62,
    kind_begun = 63
};
enum { exit_dcs_failed = 125, exit_cannot_execute = 126, exit_not_found = 127 };

/* The result of one attempt. */
enum outcome { got_it, try_again, give_up };
extern char why[1024]; /* the error of the last failed attempt */
enum outcome failed(enum outcome o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- hygiene.c --- */

enum { file_bytes = 8192, path_bytes = 4096, address_bytes = 1100 };
struct file {
    size_t length;
    char text[file_bytes + 1];
};

/* This host's pool, as described by root's files. */
struct host {
    char wrong[512];               /* why it cannot be used; empty: it can */
    char dir[path_bytes];          /* the scheduler's directory, if it runs here */
    char scheduler[address_bytes]; /* if it runs elsewhere: HOST:PORT, or several with commas */
    char pki[path_bytes];
    struct file key, certificate, authority; /* of pki; empty if this program may not read them */
};

void prepare(int argc, char **argv); /* must be called first */
void read_host(struct host *host);   /* second, if at all: nothing else needs privileges */
void drop_for_good(void);            /* third; ends the process if it fails */
void restore(void);                  /* restores the user's limits and signals */
const char *user_variable(const char *name);
char **user_environment(const char *own); /* the user's, with `own` as the only DCS_AUTH_FD=...; NULL: no memory */
void limit_time(int seconds);             /* ends the process after `seconds`; 0 cancels that */

/* --- call.c --- */

/* A connection to a scheduler; `end`: the deadline of this attempt. */
struct line {
    int fd;
    struct ssl_st *ssl;
    double end;
};

double now(void); /* seconds, including suspend */
void put(unsigned char *to, uint64_t value, int bytes);
uint64_t get(const unsigned char *from, int bytes);
enum outcome wait_ready(const struct line *line, short events);
extern char refusal[300];                                     /* why this program rejected the peer's certificate */
enum outcome tls_result(const struct line *line, int result); /* of a call of OpenSSL; waits if it has to */
enum { header_bytes = 24 };
/* `frame` has room for the header, followed by `length` bytes of payload. */
enum outcome send_frame(const struct line *line, int kind, uint64_t request, unsigned char *frame, size_t length);
/* Receives a reply of the wanted kind into `payload` (reply_bytes). The text of an error reply is stored in `why`. */
enum outcome receive_frame(const struct line *line, int wanted, uint64_t request, unsigned char *payload,
                           size_t *length);

/* --- remote.c --- */

struct identity;
/* Identifies the user, reads the keys and wipes the buffers they were read from. NULL: see `why`. */
struct identity *take_identity(struct host *host);
/* Credentials for a program named `ident`, as the text of its descriptor; the caller wipes and frees it. */
enum outcome begin_remotely(struct identity *self, const char *scheduler, const char *ident, double end, char **text,
                            size_t *length);
