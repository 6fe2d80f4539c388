/* dcs.h: calls of a control program, in C and C++. Link with -ldcs.
 *
 * Every call returns D_OK (0) or one of D_E_...; d_strerror() explains it in a sentence, and
 * d_errortext() describes this thread's last failure. Connection errors also set
 * errno (ECONNREFUSED: no scheduler answers; ECONNRESET: the connection broke).
 *
 * Pools. A call d_pool_NAME(pool, ...) acts on a pool of d_pool_open; with NULL it acts on the default
 * pool of the process, which the environment names. d_NAME(...) is d_pool_NAME(NULL, ...).
 *
 * Durability: the effect of a call that returned D_OK survives any crash of the scheduler. An interrupted
 * call takes effect completely or not at all: while the connection is broken, the library
 * repeats the same request under the same request id for the pool's patience (default: DCS_PATIENCE_S
 * seconds in the environment, otherwise 30), so that it takes effect once. D_E_UNREACHABLE: the request was not
 * sent, and nothing has changed. D_E_BROKEN: it was sent, and its answer did not arrive; a later d_resume_ses and the
 * same calls repeat it safely. A scheduler that is connected but silent is given four times as long (at
 * least 10 s), and once more over a new connection. If there is no pool, calls fail at once.
 *
 * Errors. Each call lists its own errors after "Errors:". Every call that asks the scheduler can also return
 *   D_E_UNREACHABLE, D_E_BROKEN   as above
 *   D_E_PROTOCOL                  scheduler and library have incompatible versions
 *   D_E_REFUSED                   this user may not use the pool, or not from this host, or may not do this to
 *                                 another user's sessions
 *   D_E_LIMIT                     a limit of the pool's rules or of this machine is reached; the text names it
 *   D_E_NO_SPACE, D_E_IO_ERROR    the scheduler's disk is full, or failed; acknowledged data is safe
 *   D_E_INTERNAL                  a bug of DCS; the text says where
 * and calls that act for the control program (all except d_get_auth and those that say they need no d_get_auth)
 *   D_E_NO_AUTH                   d_get_auth was not called, or the token is no longer valid: call it again
 * After an error nothing has changed, except as D_E_BROKEN says.
 *
 * Ownership: the library copies strings and structs that are passed in. Each call says who owns what it returns.
 *
 * Thread-safe: all calls except d_pool_close; each thread has a separate connection to each pool, closed when the
 * thread ends. Grains that several threads submit at the same time, one a call, share requests. After a fork the
 * child continues with the same token and sessions over new connections; what was not reported before the fork is
 * reported to the parent and to the child. Signals do not interrupt a call, and no call raises SIGPIPE.
 * pthread_cancel (deferred, as is the default) ends no thread in a call, also not in a wait, but after it.
 *
 * Structs that a program fills or reads begin with struct_size, their length as the program was compiled; the
 * d_..._init calls set it and all defaults. A struct that is only zeroed is D_E_INVALID. Later versions add fields at
 * the end, or in the place of a field `reserved`, whose default is 0. So a program works with a library
 * that is older or newer than its dcs.h: a library writes and reads no field that the program does not have, and a
 * field that the library does not have is 0; if the program sets such a field, or `reserved`, to another value, the
 * call is D_E_INVALID. In structs that the library fills, `reserved` has no meaning. Structs in an array are
 * struct_size apart.
 *
 * The scheduler's socket is DIR/scheduler/user.sock. DIR is the pool's directory: $DCS_DIR, otherwise the
 * user's own pool in $XDG_STATE_HOME/dcs or ~/.local/state/dcs, if it exists, otherwise `dir` in /etc/dcs/pool.conf.
 * If that file names a scheduler on another host instead, start the program by dcs_begin.
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
    D_E_NO_AUTH = 3,         /* d_get_auth was not called, or the token is no longer valid */
    D_E_REFUSED = 4,         /* not permitted */
    D_E_INVALID = 5,         /* bad argument */
    D_E_SESSION_ACTIVE = 6,  /* there is an active session of this number */
    D_E_SESSION_CLOSED = 7,  /* the session is terminated */
    D_E_SESSION_UNKNOWN = 8, /* there is no session of this number */
    D_E_SESSION_TAKEN = 9,   /* bound to another control ident, or taken over by another program */
    D_E_GRAIN_EXISTS = 10,   /* the number is in use, and the session was not resumed */
    D_E_GRAIN_DIFFERS = 11,  /* same number, different parameters: d_errortext() names them */
    D_E_GRAIN_UNKNOWN = 12,  /* there is no grain of this number in the session */
    D_E_NOTHING_YET = 13,    /* a wait without blocking: no unreported finished grain */
    D_E_NOTHING_LEFT = 14,   /* a wait: no unfinished and no unreported grain in the session */
    D_E_CANNOT_RUN = 15,     /* no configured host can ever run the remaining grains */
    D_E_NO_SPACE = 16,       /* the scheduler's disk is full; repeat later */
    D_E_IO_ERROR = 17,       /* a disk failed: the scheduler's, or for local files this host's */
    D_E_LIMIT = 18,          /* a limit of the installation */
    D_E_PROTOCOL = 19,       /* library and scheduler have incompatible versions */
    D_E_REPLAY_END = 20,     /* replay of a terminated session: a call that is not in its record */
    D_E_NOT_FOUND = 21,      /* a file, a host or a program does not exist */
    D_E_INTERNAL = 22        /* a bug of DCS; the text says where */
};
#define D_BLOCK 1
#define D_NO_BLOCK 0

/* The version of the loaded library, as D_VERSION: 10000 for each major, 100 for each minor version. D_VERSION is
 * the version of the header. */
int d_version(void);
const char *d_version_string(void); /* "0.2.0"; static text */

/* An error as text: its general meaning, its cause this time, its name. d_errornumber is the last failure of this
 * thread as a number, for d_pool_open. */
const char *d_strerror(int error);  /* static text, never NULL */
const char *d_errortext(void);      /* this thread's last failure; valid until its next call */
const char *d_errorname(int error); /* "D_E_SESSION_ACTIVE"; "NO_ERROR"; static text */
int d_errornumber(void);            /* what this thread's last call returned */

/* An open pool; several may be open at a time. */
struct d_pool;

/* How a pool is found and used. d_pool_options_init sets all fields to those of the default pool. */
struct d_pool_options {
    size_t struct_size;
    const char *directory; /* of the pool, an absolute path. NULL: from the environment */
    const char *ident;     /* not NULL: the first call that needs a token calls d_pool_get_auth with this ident */
    double patience_s;     /* seconds for which a broken request is repeated; 0: no repetition; negative: from the
                            * environment */
    int auth_fd;           /* a descriptor from dcs_begin, for a scheduler on another host; it is read and
                            * closed. -1: the one that DCS_AUTH_FD names, for a pool without a directory */
    int reserved;          /* 0 */
};
void d_pool_options_init_sized(struct d_pool_options *options, size_t struct_size);
static inline void d_pool_options_init(struct d_pool_options *options) {
    d_pool_options_init_sized(options, sizeof *options);
}

/* Opens a pool without connecting to it; the first call that needs a connection connects. options NULL: all defaults.
 * The caller owns the pool until d_pool_close. NULL after an error, which d_errornumber() and d_errortext() describe:
 * D_E_INVALID (a field of options; a directory that is not absolute), D_E_NO_AUTH (auth_fd holds no credentials). */
struct d_pool *d_pool_open(const struct d_pool_options *options);

/* Closes the connections of all threads to a pool and releases it, with all strings of its results. Its
 * sessions do not change. No other thread may be in a call with it. NULL is allowed and does nothing. */
void d_pool_close(struct d_pool *pool);

/* Sets how long later requests are repeated when broken, as patience_s of d_pool_options. pool NULL: the default pool.
 * Sends no request.
 * Errors: D_E_INVALID (it is not a number). */
int d_pool_set_patience(struct d_pool *pool, double patience_s);

/* Whether a later submission that differs from the recorded one only in what the grain demands of hosts is the same.
 * 1: it is, and a grain that has not started takes the new demands; 0, the default: D_E_GRAIN_DIFFERS. pool NULL: the
 * default pool. Sends no request; no other thread may submit meanwhile. Errors: none. */
int d_pool_set_new_demands(struct d_pool *pool, int on);

/* Names this control program and obtains its authorization token: from the descriptor
 * of dcs_begin (once; it is closed), otherwise from the scheduler over the Unix socket, whose peer
 * credentials identify the user. Call it before all calls except those that need no d_get_auth. A
 * program has one ident in a pool: with another one it loses the sessions of the first. `control_ident`: 1-64 bytes of
 * A-Z a-z 0-9 . _ - , not beginning with . or -
 * Errors: D_E_INVALID (not a valid ident), D_E_NO_AUTH (DCS_AUTH_FD names no token of dcs_begin). */
int d_get_auth(const char *control_ident);
int d_pool_get_auth(struct d_pool *pool, const char *control_ident);

/* Begins a new session, durably.
 * Errors: D_E_SESSION_ACTIVE, D_E_SESSION_CLOSED (the number is in use), D_E_INVALID (it is negative), D_E_LIMIT
 * (too many active sessions). */
int d_open_ses(int session_num);
int d_pool_open_ses(struct d_pool *pool, int session_num);

/* Opens the session if it does not exist; takes over an active session of the same ident (the
 * earlier control program loses it). Durable. sent_reset not 0: waits begin again with the first result. A
 * terminated session of the same ident with sent_reset is replayed: recorded submissions are null
 * operations, waits return the recorded results again, d_close_ses succeeds, any other call is
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

/* From here on, a submission of this program in the session that repeats a grain that failed begins that again, as it
 * is submitted now; with the same program, arguments, files and environment it goes on from its last checkpoint. Its
 * failure leaves the order of results, and its new result comes where it ends; those of other grains stay, and a
 * killed grain stays killed. Other demands are not an error (d_pool_set_new_demands). by_number 0: the program decides
 * by the order of results, so a grain is D_E_REFUSED if the program submitted others after its failure; else it takes
 * results by grain numbers. Call it after d_resume_ses or d_reopen_ses with sent_reset. DCS_RESUME_FAILED=1 in the
 * environment of the program is this call, with by_number 0, for each such session; a closed one in which grains
 * failed becomes active. Sends no request. Where such a run has changed demands, later ones need
 * d_pool_set_new_demands(pool, 1).
 * Errors: D_E_SESSION_UNKNOWN (this program has not opened it), D_E_SESSION_CLOSED (d_resume_ses replays it),
 * D_E_INVALID. */
int d_resume_failed(int session_num, int by_number);
int d_pool_resume_failed(struct d_pool *pool, int session_num, int by_number);

/* Terminates a session: running grains are withdrawn and kept as ready; results stay. Durable. Acknowledges all
 * results that were returned. May be repeated, and ends a replay. D_E_GRAIN_DIFFERS: this run, which repeats an earlier
 * one, took the result of a grain that it has not submitted, so its program or arguments are others; nothing is closed.
 * Errors: D_E_SESSION_UNKNOWN, D_E_SESSION_TAKEN (another program has it), D_E_GRAIN_DIFFERS, D_E_INVALID. */
int d_close_ses(int session_num);
int d_pool_close_ses(struct d_pool *pool, int session_num);

/* Permanently removes a terminated session's data; its number is then free.
 * Errors: D_E_SESSION_UNKNOWN, D_E_SESSION_ACTIVE (close it first), D_E_INVALID. */
int d_clean_ses(int session_num);
int d_pool_clean_ses(struct d_pool *pool, int session_num);

/* A file of a grain. The library reads it when the grain is submitted (at most 1 GiB) and
 * names it by its SHA-256: a content that the scheduler already has is not sent again. */
struct d_file {
    size_t struct_size;       /* sizeof(struct d_file) */
    const char *name;         /* below the grain's working directory: "a/b.txt"; NULL for programs */
    const char *path;         /* the file on this host; may be relative to the current directory */
    const char *binary_class; /* programs: for hosts of this class; NULL: for all. Others: NULL */
    int executable;           /* not 0: the grain may execute it */
    int reserved;             /* 0 */
};

/* A grain to submit. Call d_grain_init first; after it, only gargv must be set. */
struct d_grain {
    size_t struct_size;
    char *const *gargv;  /* ends in NULL. gargv[0]: the path of the executable; its last component becomes argv[0] */
    const void *input;   /* standard input: input_length bytes, at most 16 MiB, any bytes */
    size_t input_length; /* must be set with input, which need not end in NUL; 0: the input is empty */
    char *const *genvv;  /* the environment, NAME=value, ends in NULL; NULL: none */
    unsigned host_class; /* mask of host classes, see d_host_class; 0: any */
    int thrash;          /* expected memory in half megabytes */
    int urgent;          /* not 0: to the front of the queue */
    int notice;          /* minutes of warning before a checkpoint */
    int attempts;        /* runs until a failure is a result, 1 to 255; default 3 */
    /* 0: not specified. Not negative. Like all fields except the label they count for idempotence. */
    int cores;             /* that it keeps busy; 0 counts as 1 */
    int memory_mb;         /* megabytes that must be free in addition to running grains' demands, and that it
                             * may use: a run that uses more is killed (SIGKILL) and has failed; d_explain names it */
    int wall_s;            /* seconds that one run may take, also those in which its host or it is suspended; a
                             * longer one is ended (SIGXCPU) and has failed */
    const char *directory; /* working directory on the host, an absolute path; NULL: a private one */
    const char *label;     /* for display; does not count for idempotence */
    /* Files and outputs need a private working directory. Their names and contents count for idempotence,
     * their paths on this host do not. */
    const struct d_file *files; /* are in the working directory at each start of the grain */
    size_t file_count;
    const struct d_file *programs; /* the executable for gargv[0], one for each binary class; hosts of other classes
                                    * do not get the grain. None: the program installed on the host */
    size_t program_count;
    const char *const *outputs; /* names of files that it makes and that are returned with its result; ends in
                                    * NULL; may be NULL. See d_grain_file */
    /* Standard input instead of `input`, at most 1 GiB: from a file, or from a descriptor to its end. A descriptor of a
     * file is read from its offset on, and a call that fails does not change the offset: the same call reads the same
     * again. What was read from a pipe or a terminal is lost when the call fails. */
    const char *input_path;
    int input_fd;          /* -1 (the default): none; 0 is this program's standard input */
    int reserved;          /* 0 */
    const char *resources; /* named resources that it uses, "gpu=1,scratch_gb=20"; NULL or empty: none */
    const char *image;     /* file on this host with the image of the container in which it runs (docs/CONTAINERS.md);
                            * gargv[0] is then a path in it, or a name that is looked up there; directory too is a
                            * path in it. NULL or empty: no container */
};
void d_grain_init_sized(struct d_grain *grain, size_t struct_size);
static inline void d_grain_init(struct d_grain *grain) { d_grain_init_sized(grain, sizeof *grain); }

/* Submits a grain; durable when it returns D_OK, the files too. grain_num: 0 to 2147483647. After d_resume_ses an
 * identical call is a null operation, a different one D_E_GRAIN_DIFFERS; otherwise D_E_GRAIN_EXISTS.
 * Errors: D_E_GRAIN_EXISTS, D_E_GRAIN_DIFFERS, D_E_REPLAY_END (not in the record of a terminated session),
 * D_E_SESSION_UNKNOWN, D_E_SESSION_CLOSED, D_E_SESSION_TAKEN (by a newer run, or never this program's),
 * D_E_INVALID, D_E_LIMIT (input, arguments or environment are too long; too many grains wait),
 * D_E_NOT_FOUND (one of its files does not exist). */
int d_gexec_grain(int session_num, int grain_num, const struct d_grain *grain);
int d_pool_gexec_grain(struct d_pool *pool, int session_num, int grain_num, const struct d_grain *grain);

/* One of many grains. The grain is its last field, so it grows only with the grain. */
struct d_grain_order {
    size_t struct_size;
    int grain_num;
    int reserved; /* 0 */
    struct d_grain grain;
};
static inline void d_grain_order_init(struct d_grain_order *order, int grain_num) {
    order->struct_size = sizeof *order;
    order->grain_num = grain_num;
    order->reserved = 0;
    d_grain_init(&order->grain);
}

/* Submits many grains in one call, each as by d_gexec_grain: a thousand of them cost about as much as a few.
 * The array is submitted in parts, in its order, of at most 1024 grains and about 4 MiB of arguments,
 * environment and input (a larger grain is a part of its own). Each part is atomic: all of its grains are
 * submitted, or, if one of them is refused or the disk fails, none of them.
 * *taken: the number of grains from the beginning of the array that are submitted durably; all of them after D_OK.
 * *refused: the index of the grain that caused the error; `count` if the error does not concern one grain.
 * Both may be NULL. Numbers that are invalid or occur twice are found before anything is
 * sent (D_E_INVALID). D_E_BROKEN: *taken counts acknowledged grains; the next part is submitted or not.
 * After d_resume_ses the same grains may be submitted again, in calls of any size: existing ones are null
 * operations. D_E_GRAIN_DIFFERS, D_E_GRAIN_EXISTS, D_E_REPLAY_END and the errors of arguments concern one grain.
 * Errors: as d_gexec_grain. */
int d_gexec_many(int session_num, const struct d_grain_order *orders, size_t count, size_t *taken, size_t *refused);
int d_pool_gexec_many(struct d_pool *pool, int session_num, const struct d_grain_order *orders, size_t count,
                      size_t *taken, size_t *refused);

/* The end of a grain. */
struct d_result {
    size_t struct_size;
    int grain_num;
    int completed;         /* results in the session so far */
    int sent;              /* results returned so far, with this one */
    int termsig, retcode;  /* signal that ended it, or 0; exit code */
    int result_index;      /* place in the order of finishing, from 0; killed and forgotten results leave gaps */
    struct rusage rusage;  /* of all its runs */
    size_t outlen, errlen; /* complete lengths */
    char *output, *error;  /* NUL-terminated, the first 20 KiB */
};
static inline void d_result_init(struct d_result *results, size_t count) /* of one, or an array */
{
    memset(results, 0, count * sizeof *results);
    for (; count > 0; --count) results[count - 1].struct_size = sizeof *results;
}

/* Takes the next unreported finished grain, in the order in which grains finished. *result: initialised once by
 * d_result_init. Its strings belong to the library and stay valid until this thread's next wait in this pool. A grain
 * that has failed in all its attempts is reported with its signal and code. block D_NO_BLOCK (0): D_E_NOTHING_YET at
 * once if there is none. D_BLOCK, or any other value: waits without polling and without a time limit, also through
 * restarts of the scheduler.
 * The result counts as sent when the next one is requested or the session is closed, at the latest when that call
 * returns or its program ends.
 * D_E_NOTHING_LEFT: every grain of the session has been reported; or, in a session that was resumed with sent_reset,
 * every grain that this run has submitted, and those that are left were submitted by an earlier run after it had taken
 * as many results: so it comes where the earlier run got it.
 * Errors: D_E_NOTHING_YET (D_NO_BLOCK), D_E_NOTHING_LEFT, D_E_CANNOT_RUN, D_E_REPLAY_END (the record of a
 * terminated session has no further result: all have been reported, or it was closed before its grains had ended),
 * D_E_SESSION_UNKNOWN (not opened by this program), D_E_SESSION_CLOSED, D_E_SESSION_TAKEN, D_E_INVALID. */
int d_gwait_result(int block, int session_num, struct d_result *result);
int d_pool_gwait_result(struct d_pool *pool, int block, int session_num, struct d_result *result);

/* Takes the next unreported finished grains, up to `max` of them (at most 1024 at a time), in the order in
 * which grains finished, each as by d_gwait_result. results: `max` structs, initialised by d_result_init. *count:
 * the number of results; 0 after an error. D_BLOCK: waits for the first one only. Results with long
 * outputs are returned in smaller numbers. The strings are as those of d_gwait_result. All the results count as sent
 * when the next ones are requested or the session is closed. May be mixed with the other waits.
 * Errors: as d_gwait_result. */
int d_gwait_many(int block, int session_num, int max, struct d_result *results, int *count);
int d_pool_gwait_many(struct d_pool *pool, int block, int session_num, int max, struct d_result *results, int *count);

/* Takes the next result as d_gwait_result, with its complete outputs as streams that the caller reads and closes.
 * result, output and error may be NULL; the strings of *result are NULL. After an error the result is not taken, and
 * *output and *error are NULL.
 * Errors: as d_gwait_result. */
int d_pool_gwait_streams(struct d_pool *pool, int block, int session_num, struct d_result *result, FILE **output,
                         FILE **error);

/* Kills a grain, durably: after D_OK the grain does not run again, and a result that was not reported is discarded. One
 * that was reported, also to an earlier run, stays, and is reported again in a replay.
 * Errors: D_E_GRAIN_UNKNOWN, D_E_SESSION_UNKNOWN, D_E_SESSION_CLOSED, D_E_SESSION_TAKEN, D_E_REPLAY_END (the
 * record of a terminated session has it unkilled), D_E_INVALID. */
int d_gkill(int session_num, int grain_num);
int d_pool_gkill(struct d_pool *pool, int session_num, int grain_num);

/* d_gexec_grain with the parameters of the 1990 paper, for the default pool. input_str: NUL-terminated; NULL: none.
 * Errors: as d_gexec_grain, but for D_E_NOT_FOUND. */
int d_gexec(int session_num, int grain_num, char *const gargv[], char *const genvv[], const char *input_str,
            unsigned host_class, int thrash, int urgent, int notice);

/* d_gwait_result with the parameters of the 1990 paper, for the default pool. Every pointer may be NULL.
 * Errors: as d_gwait_result. */
int d_gwait(int block, int session_num, int *grain_num, int *completed, int *sent, int *termsig, int *retcode,
            struct rusage *rusage, size_t *outlen, char **output, size_t *errlen, char **error);

/* d_pool_gwait_streams with the parameters of the 1990 paper, for the default pool.
 * Errors: as d_gwait_result. */
int d_gwait_streams(int block, int session_num, int *grain_num, int *completed, int *sent, int *termsig, int *retcode,
                    struct rusage *rusage, FILE **output, FILE **error);

#ifdef __cplusplus
}
#endif

#include "dcs_query.h"
#endif
#ifndef DCS_NO_PAPER_NAMES
#include "dcs_paper.h"
#endif
