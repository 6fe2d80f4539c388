/* dcs.h: calls of a control program, in C and C++. Link with -ldcs.
 *
 * Every call returns D_OK (0) or one of D_E_...; d_strerror() explains it in a sentence, and
 * d_errortext() gives the particulars of this thread's last failure. Connection errors also set
 * errno (ECONNREFUSED: no scheduler answers; ECONNRESET: the connection broke).
 *
 * Pools. A call d_pool_NAME(pool, ...) acts on the pool that d_pool_open gave; with NULL it acts on the default
 * pool of the process, which the environment names. d_NAME(...) is d_pool_NAME(NULL, ...).
 *
 * Durability: a call that returned D_OK survives any crash of the scheduler. A call that was
 * interrupted either happened wholly or not at all; while the connection is broken the library
 * repeats the same request under the same request id for the pool's patience (default: DCS_PATIENCE_S
 * seconds in the environment, else 30), so that it happens once. D_E_UNREACHABLE: the request never left, nothing
 * happened. D_E_BROKEN: it left and its answer did not come; repeated by a later d_resume_ses and the same
 * calls it does no harm. A scheduler that is connected but silent is given four times as long (at
 * least 10 s). Where there is no pool at all, calls fail at once.
 *
 * Errors. Behind "Errors:" each call names those that are its own. Every call that asks the scheduler can also end with
 *   D_E_UNREACHABLE, D_E_BROKEN   as above
 *   D_E_PROTOCOL                  scheduler and library do not understand each other: their versions differ
 *   D_E_REFUSED                   this user may not use the pool, or not from this host, or may not do this to
 *                                 another's sessions
 *   D_E_LIMIT                     the pool's rules or this machine allow no more of that now; the text says of what
 *   D_E_NO_SPACE, D_E_IO_ERROR    the scheduler's disk is full, or failed; what was acknowledged is there
 *   D_E_INTERNAL                  a fault of DCS; the text says where
 * and those that act for the control program (all but d_get_auth and those that say they need no d_get_auth) with
 *   D_E_NO_AUTH                   d_get_auth was not called, or the token is not known any more: call it again
 * After an error nothing has changed, but for what D_E_BROKEN says.
 *
 * Ownership: strings and structs that go in are copied. Each call says to whom belongs what comes out.
 *
 * Thread-safe: all calls but d_pool_close; each thread has a connection of its own to each pool, closed when the
 * thread ends. After a fork the child goes on with the same token and sessions over connections of its own. Signals do
 * not interrupt a call, and no call raises SIGPIPE.
 *
 * Structs that a program fills or reads begin with struct_size, their length as the program was compiled; the
 * d_..._init calls set it. Later versions add fields at the end, whose default is 0. So a program works with a library
 * that is older or newer than its dcs.h: a library writes and reads no field that the program does not have, and a
 * field that the library does not have is 0; one that the program set is D_E_INVALID. Structs in an array lie
 * struct_size apart.
 *
 * The scheduler is found at DIR/scheduler/user.sock. DIR is the pool's directory; by default $DCS_DIR, else the
 * user's own pool in $XDG_STATE_HOME/dcs or ~/.local/state/dcs, if there is one; else what `dir` in /etc/dcs/pool.conf
 * says. If that file names a scheduler on another host instead, the program is started by dcs_begin.
 *
 * The names of the 1990 paper that have no prefix (NO_ERROR, TRUE, BLOCK and others) are in dcs_paper.h, which this
 * header includes unless DCS_NO_PAPER_NAMES is defined. */
#ifndef DCS_H
#define DCS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

#define D_VERSION_MAJOR 0
#define D_VERSION_MINOR 2
#define D_VERSION_PATCH 0
#define D_VERSION_STRING "0.2.0"
#define D_VERSION (D_VERSION_MAJOR * 10000 + D_VERSION_MINOR * 100 + D_VERSION_PATCH)

enum d_error {
    D_OK = 0,
    D_E_UNREACHABLE = 1,     /* no scheduler answers; errno says why */
    D_E_BROKEN = 2,          /* the connection broke and could not be made again in time */
    D_E_NO_AUTH = 3,         /* d_get_auth was not called, or the token is not known any more */
    D_E_REFUSED = 4,         /* not permitted */
    D_E_INVALID = 5,         /* bad argument */
    D_E_SESSION_ACTIVE = 6,  /* there is an active session of this number */
    D_E_SESSION_CLOSED = 7,  /* the session is terminated */
    D_E_SESSION_UNKNOWN = 8, /* there is no session of this number */
    D_E_SESSION_TAKEN = 9,   /* bound to another control ident, or taken over by another program */
    D_E_GRAIN_EXISTS = 10,   /* the number is in use, and the session was not resumed */
    D_E_GRAIN_DIFFERS = 11,  /* same number, other parameters: d_errortext() names them */
    D_E_GRAIN_UNKNOWN = 12,  /* there is no grain of this number in the session */
    D_E_NOTHING_YET = 13,    /* a wait without blocking: nothing finished that was not reported */
    D_E_NOTHING_LEFT = 14,   /* a wait: no unfinished and no unreported grain in the session */
    D_E_CANNOT_RUN = 15,     /* no configured host could ever run what remains */
    D_E_NO_SPACE = 16,       /* the scheduler's disk is full; repeat later */
    D_E_IO_ERROR = 17,       /* a disk failed: the scheduler's, or for local files this one's */
    D_E_LIMIT = 18,          /* a limit of the installation */
    D_E_PROTOCOL = 19,       /* library and scheduler do not understand each other */
    D_E_REPLAY_END = 20,     /* replay of a terminated session met something new */
    D_E_NOT_FOUND = 21,      /* a file, a host or a program is not there */
    D_E_INTERNAL = 22        /* a fault of DCS; the text says where */
};
#define D_BLOCK 1
#define D_NO_BLOCK 0

/* The version of the library that runs, as D_VERSION: 10000 for each major, 100 for each minor version. D_VERSION is
 * that of the header. */
int d_version(void);
const char *d_version_string(void); /* "0.2.0"; static text */

/* An error in words: what it means in general, what happened this time, its name. The last failure of this thread as a
 * number too, for d_pool_open. */
const char *d_strerror(int error);  /* static text, never NULL */
const char *d_errortext(void);      /* this thread's last failure in words; valid until its next call */
const char *d_errorname(int error); /* "D_E_SESSION_ACTIVE"; "NO_ERROR"; static text */
int d_errornumber(void);            /* what this thread's last call returned */

/* A pool to work with; several may be open at a time. */
struct d_pool;

/* How a pool is found and used. d_pool_options_init gives all fields what the default pool has. */
struct d_pool_options {
    size_t struct_size;
    const char *directory; /* of the pool, absolute. NULL: as the environment says */
    const char *ident;     /* not NULL: the first call that needs it does d_pool_get_auth with this ident */
    double patience_s;     /* seconds for which a broken request is repeated; 0: not at all; negative: as the
                            * environment says */
    int auth_fd;           /* a descriptor as dcs_begin leaves it, for a scheduler on another host; it is read and
                            * closed. -1: the one that DCS_AUTH_FD names, for a pool without a directory */
    int reserved;          /* 0 */
};
void d_pool_options_init_sized(struct d_pool_options *options, size_t struct_size);
static inline void d_pool_options_init(struct d_pool_options *options)
{
    d_pool_options_init_sized(options, sizeof *options);
}

/* Opens a pool, without speaking to it: that is done by the first call that needs to. options NULL: all defaults. The
 * pool is the caller's until d_pool_close. NULL after an error, which d_errornumber() and d_errortext() tell:
 * D_E_INVALID (a field of options), D_E_NO_AUTH (auth_fd holds no credentials). */
struct d_pool *d_pool_open(const struct d_pool_options *options);

/* Closes the connections of all threads to a pool and releases it, with all strings of results that it handed out. Its
 * sessions stay as they are. No other thread may be in a call with it. NULL is allowed: nothing happens. */
void d_pool_close(struct d_pool *pool);

/* Sets how long from now on broken requests are repeated, as patience_s of d_pool_options. pool NULL: the default pool.
 * Sends no request.
 * Errors: D_E_INVALID (it is not a number). */
int d_pool_set_patience(struct d_pool *pool, double patience_s);

/* Names this control program and obtains its authorization token: from the descriptor
 * that dcs_begin left (once; it is closed), else from the scheduler over the Unix socket, whose peer
 * credentials identify the user. Must come before all other calls that do not say that they need no d_get_auth; a
 * program has one ident in a pool. `control_ident`: 1-64 bytes of A-Z a-z 0-9 . _ - , not beginning with . or -
 * Errors: D_E_INVALID (no such ident), D_E_NO_AUTH (DCS_AUTH_FD names no token of dcs_begin). */
int d_get_auth(const char *control_ident);
int d_pool_get_auth(struct d_pool *pool, const char *control_ident);

/* Begins a new session, durably.
 * Errors: D_E_SESSION_ACTIVE, D_E_SESSION_CLOSED (the number is in use), D_E_INVALID (it is negative), D_E_LIMIT
 * (so many active sessions are not allowed). */
int d_open_ses(int session_num);
int d_pool_open_ses(struct d_pool *pool, int session_num);

/* Opens the session if there is none; takes over an active session of the same ident (the
 * earlier control program loses it). Durable. sent_reset not 0: waits begin again with the first result. A
 * terminated session of the same ident with sent_reset is replayed: recorded submissions are null
 * operations, waits give the recorded results again, d_close_ses succeeds, anything new is
 * D_E_REPLAY_END.
 * Errors: D_E_SESSION_CLOSED (terminated, and without sent_reset), D_E_SESSION_TAKEN (bound to another ident),
 * D_E_INVALID, D_E_LIMIT (as d_open_ses). */
int d_resume_ses(int session_num, int sent_reset);
int d_pool_resume_ses(struct d_pool *pool, int session_num, int sent_reset);

/* Makes a terminated session active again, with its old seniority. Durable.
 * Errors: D_E_SESSION_UNKNOWN, D_E_SESSION_ACTIVE, D_E_SESSION_TAKEN (bound to another ident), D_E_INVALID,
 * D_E_LIMIT (as d_open_ses). */
int d_reopen_ses(int session_num, int sent_reset);
int d_pool_reopen_ses(struct d_pool *pool, int session_num, int sent_reset);

/* Terminates a session: running grains are withdrawn and kept as ready; results stay. Durable. Acknowledges all
 * results handed out. Once more does no harm, and ends a replay.
 * Errors: D_E_SESSION_UNKNOWN, D_E_SESSION_TAKEN (another program has it), D_E_INVALID. */
int d_close_ses(int session_num);
int d_pool_close_ses(struct d_pool *pool, int session_num);

/* Removes a terminated session's data, for good; the number is free then.
 * Errors: D_E_SESSION_UNKNOWN, D_E_SESSION_ACTIVE (close it first), D_E_INVALID. */
int d_clean_ses(int session_num);
int d_pool_clean_ses(struct d_pool *pool, int session_num);

/* A file that goes with a grain. It is read here when the grain is submitted (at most 1 GiB) and
 * travels by its SHA-256: what the scheduler has already is not sent again. */
struct d_file {
    size_t struct_size;       /* sizeof(struct d_file) */
    const char *name;         /* below the grain's working directory: "a/b.txt"; NULL for programs */
    const char *path;         /* to read it from */
    const char *binary_class; /* programs: for hosts of this class; NULL: for all. Others: NULL */
    int executable;           /* not 0: the grain may execute it */
    int reserved;             /* 0 */
};

/* A grain to submit. Fill it by d_grain_init first; all but gargv may stay as it is then. */
struct d_grain {
    size_t struct_size;
    char *const *gargv;     /* ends in NULL. gargv[0]: the path of the executable; its last component becomes argv[0] */
    const void *input;      /* standard input: input_length bytes, at most 16 MiB, which may hold any byte */
    size_t input_length;
    char *const *genvv;     /* the environment, NAME=value, ends in NULL; NULL: none */
    unsigned host_class;    /* mask of host classes; 0: any */
    int thrash;             /* expected memory in half megabytes */
    int urgent;             /* not 0: to the front of the queue */
    int notice;             /* minutes of warning before a checkpoint */
    int attempts;           /* failures until the end is a result; default 3 */
    /* 0: not said. Not negative. Like everything else but the label they count for idempotence. */
    int cores;              /* that it keeps busy; counts as 1 */
    int memory_mb;          /* megabytes that it must find free, beside what running grains asked for, and may use: a
                             * run that uses more is killed (SIGKILL) and has failed; d_explain names the limit */
    int wall_s;             /* seconds that one run of it may take; a longer one is ended (SIGXCPU) and has failed */
    const char *directory;  /* working directory on the host; NULL: a private one */
    const char *label;      /* for people; does not count for idempotence */
    /* Files and outputs need a private working directory. Their names and contents count for idempotence,
     * not where they lie here. */
    const struct d_file *files;    /* lie in the working directory whenever the grain starts */
    size_t file_count;
    const struct d_file *programs; /* what gargv[0] means, one for each binary class; hosts of other classes
                                    * do not get the grain. None: what is installed on the host */
    size_t program_count;
    const char *const *outputs;    /* names of files that it makes and that come back with its result; ends in
                                    * NULL; may be NULL. See d_grain_file */
    /* Standard input instead of `input`, at most 1 GiB: from a file, or from a descriptor to its end. */
    const char *input_path;
    int input_fd;                  /* -1: none */
    int reserved;                  /* 0 */
};
void d_grain_init_sized(struct d_grain *grain, size_t struct_size);
static inline void d_grain_init(struct d_grain *grain)
{
    d_grain_init_sized(grain, sizeof *grain);
}

/* Submits a grain; durable when it returns D_OK, the files too. grain_num: 0 to 2147483647. After d_resume_ses an
 * identical call is a null operation, a different one D_E_GRAIN_DIFFERS; otherwise D_E_GRAIN_EXISTS.
 * Errors: D_E_GRAIN_EXISTS, D_E_GRAIN_DIFFERS, D_E_REPLAY_END (not in the record of a terminated session),
 * D_E_SESSION_UNKNOWN, D_E_SESSION_CLOSED, D_E_SESSION_TAKEN (by a newer run, or never this program's),
 * D_E_INVALID, D_E_LIMIT (input, arguments or environment are too long; too many grains wait),
 * D_E_NOT_FOUND (a file to go with it is not there). */
int d_gexec_grain(int session_num, int grain_num, const struct d_grain *grain);
int d_pool_gexec_grain(struct d_pool *pool, int session_num, int grain_num, const struct d_grain *grain);

/* One of many grains. It ends in the grain, so it grows with it and in no other way. */
struct d_grain_order {
    size_t struct_size;
    int grain_num;
    int reserved;           /* 0 */
    struct d_grain grain;
};
static inline void d_grain_order_init(struct d_grain_order *order, int grain_num)
{
    order->struct_size = sizeof *order;
    order->grain_num = grain_num;
    order->reserved = 0;
    d_grain_init(&order->grain);
}

/* Submits many grains in one call, each as by d_gexec_grain: a thousand of them cost about as much as a few.
 * The array is submitted in parts, from its beginning on, of at most 1024 grains and about 4 MiB of arguments,
 * environment and input (a grain with more goes alone). Each part is atomic, in every case: all of its grains are
 * submitted, or, when one of them is refused or something is wrong with the disk, none of them.
 * *taken: so many from the beginning of the array are submitted, durably; all of them after D_OK.
 * *refused: the index of the grain on account of which the call ended; `count` when it was not about one of
 * them. Both may be NULL. Each order's number and that none stands there twice is checked before anything is
 * sent (D_E_INVALID). D_E_BROKEN: *taken counts what was acknowledged; the part behind it is submitted or not.
 * Repeated after d_resume_ses, with the same or other calls of any size, grains that are there already are null
 * operations. D_E_GRAIN_DIFFERS, D_E_GRAIN_EXISTS, D_E_REPLAY_END and the errors of arguments are about one grain.
 * Errors: as d_gexec_grain. */
int d_gexec_many(int session_num, const struct d_grain_order *orders, size_t count, size_t *taken, size_t *refused);
int d_pool_gexec_many(struct d_pool *pool, int session_num, const struct d_grain_order *orders, size_t count,
                      size_t *taken, size_t *refused);

/* The end of a grain. */
struct d_result {
    size_t struct_size;
    int grain_num;
    int completed;          /* results that there are in the session so far */
    int sent;               /* of them handed out, this one included; sent - 1 is its place in the order of finishing */
    int termsig, retcode;   /* signal that ended it, or 0; exit code */
    int reserved;
    struct rusage rusage;   /* of all of its runs */
    size_t outlen, errlen;  /* whole lengths */
    char *output, *error;   /* NUL-terminated, the first 20 KiB */
};
static inline void d_result_init(struct d_result *results, size_t count) /* of one, or an array */
{
    memset(results, 0, count * sizeof *results);
    for (; count > 0; --count) results[count - 1].struct_size = sizeof *results;
}

/* Takes the next unreported finished grain, in the order in which grains finished. *result: by d_result_init, which
 * once is enough. Its strings belong to the library and stay valid until this thread's next wait in this pool. A grain
 * that the system gave up on is reported with its signal and code. block = D_NO_BLOCK: D_E_NOTHING_YET at once.
 * D_BLOCK: waits without polling, also through a restart of the scheduler, however long.
 * The result counts as sent when the next one is asked for, or the session closed; for sure when that call
 * returned or its program ended.
 * Errors: D_E_NOTHING_YET (D_NO_BLOCK), D_E_NOTHING_LEFT, D_E_CANNOT_RUN, D_E_REPLAY_END (the record of a
 * terminated session has no further result), D_E_SESSION_UNKNOWN (not opened by this program), D_E_SESSION_CLOSED,
 * D_E_SESSION_TAKEN, D_E_INVALID. */
int d_gwait_result(int block, int session_num, struct d_result *result);
int d_pool_gwait_result(struct d_pool *pool, int block, int session_num, struct d_result *result);

/* Takes the next unreported finished grains, up to `max` of them (at most 1024 come at a time), in the order in
 * which grains finished: each as d_gwait_result would have given it. results: `max` of them, by d_result_init. *count:
 * how many came; 0 after an error. D_BLOCK: waits until there is one, and does not wait for more. Results with long
 * outputs come in smaller numbers. The strings are as those of d_gwait_result. All of the results count as sent when
 * the next are asked for, or the session closed. May be mixed with the other waits.
 * Errors: as d_gwait_result. */
int d_gwait_many(int block, int session_num, int max, struct d_result *results, int *count);
int d_pool_gwait_many(struct d_pool *pool, int block, int session_num, int max, struct d_result *results, int *count);

/* Takes the next result as d_gwait_result, with its whole outputs: streams open for reading, which the caller closes.
 * result may be NULL, its strings are NULL; so may output and error be. After an error the result is still to be taken.
 * Errors: as d_gwait_result. */
int d_pool_gwait_streams(struct d_pool *pool, int block, int session_num, struct d_result *result, FILE **output,
                         FILE **error);

/* Kills a grain, durably: once it returned D_OK the grain will not run again and no unreported result of it comes.
 * Errors: D_E_GRAIN_UNKNOWN, D_E_SESSION_UNKNOWN, D_E_SESSION_CLOSED, D_E_SESSION_TAKEN, D_E_REPLAY_END (the
 * record of a terminated session has it unkilled), D_E_INVALID. */
int d_gkill(int session_num, int grain_num);
int d_pool_gkill(struct d_pool *pool, int session_num, int grain_num);

/* d_gexec_grain with the parameters of the 1990 paper, for the default pool. input_str: NUL-terminated; NULL: none.
 * Errors: as d_gexec_grain, but for D_E_NOT_FOUND. */
int d_gexec(int session_num, int grain_num, char *const gargv[], char *const genvv[],
            const char *input_str, unsigned host_class, int thrash, int urgent, int notice);

/* d_gwait_result with the parameters of the 1990 paper, for the default pool. Every pointer may be NULL.
 * Errors: as d_gwait_result. */
int d_gwait(int block, int session_num, int *grain_num, int *completed, int *sent, int *termsig,
            int *retcode, struct rusage *rusage, size_t *outlen, char **output, size_t *errlen,
            char **error);

/* d_pool_gwait_streams with the parameters of the 1990 paper, for the default pool.
 * Errors: as d_gwait_result. */
int d_gwait_streams(int block, int session_num, int *grain_num, int *completed, int *sent,
                    int *termsig, int *retcode, struct rusage *rusage, FILE **output, FILE **error);

#ifdef __cplusplus
}
#endif

#include "dcs_query.h"
#endif
#ifndef DCS_NO_PAPER_NAMES
#include "dcs_paper.h"
#endif
