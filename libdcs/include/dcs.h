/* dcs.h: calls of a control program (paper, section 3.2, Figure 1). Link with -ldcs.
 *
 * Every call returns NO_ERROR (0) or one of D_E_...; d_strerror() explains it in a sentence, and
 * d_errortext() gives the particulars of this thread's last failure. Connection errors also set
 * errno (ECONNREFUSED: no scheduler answers; ECONNRESET: the connection broke).
 *
 * Durability: a call that returned NO_ERROR survives any crash of the scheduler. A call that was
 * interrupted either happened wholly or not at all; while the connection is broken the library
 * repeats the same request under the same request id for DCS_PATIENCE_S seconds (environment,
 * default 30), so that it happens once. D_E_UNREACHABLE: the request never left, nothing happened.
 * D_E_BROKEN: it left and its answer did not come; repeated by a later d_resume_ses and the same
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
 * Thread-safe: all calls; each thread has a connection of its own, closed when the thread ends. After
 * a fork the child goes on with the same token and sessions over connections of its own. Signals do
 * not interrupt a call, and no call raises SIGPIPE.
 *
 * The scheduler is found at DIR/scheduler/user.sock. DIR is $DCS_DIR; else the user's own pool in
 * $XDG_STATE_HOME/dcs or ~/.local/state/dcs, if there is one; else what `dir` in /etc/dcs/pool.conf
 * says. If that file names a scheduler on another host instead, the program is started by dcs_begin. */
#ifndef DCS_H
#define DCS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

enum d_error {
    NO_ERROR = 0,
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
    D_E_NOTHING_YET = 13,    /* d_gwait without blocking: nothing finished that was not reported */
    D_E_NOTHING_LEFT = 14,   /* d_gwait: no unfinished and no unreported grain in the session */
    D_E_CANNOT_RUN = 15,     /* no configured host could ever run what remains */
    D_E_NO_SPACE = 16,       /* the scheduler's disk is full; repeat later */
    D_E_IO_ERROR = 17,       /* a disk failed: the scheduler's, or for local files this one's */
    D_E_LIMIT = 18,          /* a limit of the installation */
    D_E_PROTOCOL = 19,       /* library and scheduler do not understand each other */
    D_E_REPLAY_END = 20,     /* replay of a terminated session met something new */
    D_E_NOT_FOUND = 21,      /* a file, a host or a program is not there */
    D_E_INTERNAL = 22        /* a fault of DCS; the text says where */
};
#define NOERROR NO_ERROR

#ifndef TRUE
#define TRUE 1
#define FALSE 0
#endif
#define D_BLOCK 1
#define D_NO_BLOCK 0
#ifndef BLOCK
#define BLOCK D_BLOCK /* the paper's Appendix B */
#endif

/* An error in words: what it means in general, what happened this time, its name. */
const char *d_strerror(int error);  /* static text, never NULL */
const char *d_errortext(void);      /* this thread's last failure in words; valid until its next call */
const char *d_errorname(int error); /* "D_E_SESSION_ACTIVE"; "NO_ERROR" */

/* C1 (3.1). Names this control program and obtains its authorization token: from the descriptor
 * that dcs_begin left (once; it is closed), else from the scheduler over the Unix socket, whose peer
 * credentials identify the user. Must come before all other calls but d_query. `control_ident`:
 * 1-64 bytes of A-Z a-z 0-9 . _ - , not beginning with . or -
 * Errors: D_E_INVALID (no such ident), D_E_NO_AUTH (DCS_AUTH_FD names no token of dcs_begin). */
int d_get_auth(const char *control_ident);

/* C2 (3.2). New session.
 * Errors: D_E_SESSION_ACTIVE, D_E_SESSION_CLOSED (the number is in use), D_E_INVALID (it is negative), D_E_LIMIT
 * (so many active sessions are not allowed). */
int d_open_ses(int session_num);

/* C3 (3.2). Opens the session if there is none; takes over an active session of the same ident (the
 * earlier control program loses it). sent_reset: d_gwait begins again with the first result. A
 * terminated session of the same ident with sent_reset is replayed: recorded d_gexec calls are null
 * operations, d_gwait gives the recorded results again, d_close_ses succeeds, anything new is
 * D_E_REPLAY_END.
 * Errors: D_E_SESSION_CLOSED (terminated, and without sent_reset), D_E_SESSION_TAKEN (bound to another ident),
 * D_E_INVALID, D_E_LIMIT (as d_open_ses). */
int d_resume_ses(int session_num, int sent_reset);

/* C4. A terminated session becomes active again with its old seniority.
 * Errors: D_E_SESSION_UNKNOWN, D_E_SESSION_ACTIVE, D_E_SESSION_TAKEN (bound to another ident), D_E_INVALID,
 * D_E_LIMIT (as d_open_ses). */
int d_reopen_ses(int session_num, int sent_reset);

/* C5. Terminates: running grains are withdrawn and kept as ready; results stay. Acknowledges all
 * results handed out. Once more does no harm, and ends a replay.
 * Errors: D_E_SESSION_UNKNOWN, D_E_SESSION_TAKEN (another program has it), D_E_INVALID. */
int d_close_ses(int session_num);

/* C6. Removes a terminated session's data, for good; the number is free then.
 * Errors: D_E_SESSION_UNKNOWN, D_E_SESSION_ACTIVE (close it first), D_E_INVALID. */
int d_clean_ses(int session_num);

/* C7. Submits a grain; durable when it returns NO_ERROR. gargv[0] is the path of the executable; its
 * last component becomes argv[0]. genvv may be NULL. input_str: NUL-terminated, at most 16 MiB.
 * host_class: mask of host classes, 0 any. thrash: expected memory in half megabytes. urgent: to the
 * front of the queue. notice: minutes of warning before a checkpoint. After d_resume_ses an identical
 * call is a null operation, a different one D_E_GRAIN_DIFFERS; otherwise D_E_GRAIN_EXISTS.
 * Errors: D_E_GRAIN_EXISTS, D_E_GRAIN_DIFFERS, D_E_REPLAY_END (not in the record of a terminated session),
 * D_E_SESSION_UNKNOWN, D_E_SESSION_CLOSED, D_E_SESSION_TAKEN (by a newer run, or never this program's),
 * D_E_INVALID, D_E_LIMIT (input, arguments or environment are too long; too many grains wait). */
int d_gexec(int session_num, int grain_num, char *const gargv[], char *const genvv[],
            const char *input_str, unsigned host_class, int thrash, int urgent, int notice);

/* C13. A file that goes with a grain. It is read here when the grain is submitted (at most 1 GiB) and
 * travels by its SHA-256: what the scheduler has already is not sent again. */
struct d_file {
    const char *name;         /* below the grain's working directory: "a/b.txt"; NULL for programs */
    const char *path;         /* to read it from */
    const char *binary_class; /* programs: for hosts of this class; NULL: for all. Others: NULL */
    int executable;           /* not 0: the grain may execute it */
};

/* C13. The same with everything that is new since the paper. Fill it by d_grain_init first. */
struct d_grain {
    char *const *gargv;
    char *const *genvv;
    const void *input;      /* input_length bytes, may hold any byte */
    size_t input_length;
    unsigned host_class;
    int thrash, urgent, notice;
    int attempts;           /* failures until the end is a result; default 3 */
    const char *directory;  /* working directory on the host; NULL: a private one */
    const char *label;      /* for people; does not count for idempotence */
    /* 0: not said. Not negative. Like everything else but the label they count for idempotence. */
    int cores;              /* that it keeps busy; counts as 1 */
    int memory_mb;          /* megabytes that it must find free, beside what running grains asked for */
    int wall_s;             /* seconds that one run of it may take; a longer one is ended and has failed */
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
};
void d_grain_init(struct d_grain *grain);

/* C13. d_gexec with a struct. Durable when it returns NO_ERROR, the files too.
 * Errors: as d_gexec, D_E_NOT_FOUND (a file to go with it is not there). */
int d_gexec_grain(int session_num, int grain_num, const struct d_grain *grain);

/* C13. Many grains in one call, each as by d_gexec_grain: a thousand of them cost about as much as a few.
 * The array is submitted in parts, from its beginning on, of at most 1024 grains and about 4 MiB of arguments,
 * environment and input (a grain with more goes alone). Each part is atomic, in every case: all of its grains are
 * submitted, or, when one of them is refused or something is wrong with the disk, none of them.
 * *taken: so many from the beginning of the array are submitted, durably; all of them after NO_ERROR.
 * *refused: the index of the grain on account of which the call ended; `count` when it was not about one of
 * them. Both may be NULL. Each order's number and that none stands there twice is checked before anything is
 * sent (D_E_INVALID). D_E_BROKEN: *taken counts what was acknowledged; the part behind it is submitted or not.
 * Repeated after d_resume_ses, with the same or other calls of any size, grains that are there already are null
 * operations. D_E_GRAIN_DIFFERS, D_E_GRAIN_EXISTS, D_E_REPLAY_END and the errors of arguments are about one grain.
 * Errors: as d_gexec_grain. */
struct d_grain_order {
    int grain_num;
    struct d_grain grain;   /* by d_grain_init */
};
int d_gexec_many(int session_num, const struct d_grain_order *orders, size_t count, size_t *taken, size_t *refused);

/* C8. The next unreported finished grain, in the order in which grains finished. Every pointer may
 * be NULL. *output and *error are NUL-terminated, hold the first 20 KiB, belong to the library and
 * stay valid until this thread's next d_gwait or d_gwait_many; *outlen and *errlen are the whole lengths. A grain that
 * the system gave up on is reported with its signal and code. block = 0: D_E_NOTHING_YET at once.
 * block != 0: waits without polling, also through a restart of the scheduler, however long.
 * The result counts as sent when the next one is asked for, or the session closed; for sure when that call
 * returned or its program ended.
 * Errors: D_E_NOTHING_YET (block = 0), D_E_NOTHING_LEFT, D_E_CANNOT_RUN, D_E_REPLAY_END (the record of a
 * terminated session has no further result), D_E_SESSION_UNKNOWN (not opened by this program), D_E_SESSION_CLOSED,
 * D_E_SESSION_TAKEN, D_E_INVALID. */
int d_gwait(int block, int session_num, int *grain_num, int *completed, int *sent, int *termsig,
            int *retcode, struct rusage *rusage, size_t *outlen, char **output, size_t *errlen,
            char **error);
/* The same with whole outputs: streams open for reading, which the caller closes.
 * Errors: as d_gwait. */
int d_gwait_streams(int block, int session_num, int *grain_num, int *completed, int *sent,
                    int *termsig, int *retcode, struct rusage *rusage, FILE **output, FILE **error);

/* C13. The next unreported finished grains, up to `max` of them (at most 1024 come at a time), in the order in
 * which grains finished: each as d_gwait would have given it. *count: how many; 0 after an error. block != 0:
 * waits until there is one, and does not wait for more. Results with long outputs come in smaller numbers. The
 * strings belong to the library and stay valid until this thread's next d_gwait or d_gwait_many. All of the
 * results count as sent when the next are asked for, or the session closed. May be mixed with d_gwait.
 * Errors: as d_gwait. */
struct d_result {
    int grain_num, completed, sent, termsig, retcode;
    struct rusage rusage;
    size_t outlen, errlen;  /* whole lengths */
    char *output, *error;   /* NUL-terminated, the first 20 KiB */
};
int d_gwait_many(int block, int session_num, int max, struct d_result *results, int *count);

/* C9. Once it returned NO_ERROR the grain will not run again and no unreported result of it comes.
 * Errors: D_E_GRAIN_UNKNOWN, D_E_SESSION_UNKNOWN, D_E_SESSION_CLOSED, D_E_SESSION_TAKEN, D_E_REPLAY_END (the
 * record of a terminated session has it unkilled), D_E_INVALID. */
int d_gkill(int session_num, int grain_num);

/* C10 (3.2). What the scheduler knows. Needs no d_get_auth. The answer is one block, with all that it
 * points to, that d_query_free releases; rows in ascending order, all that there are. user NULL: the
 * caller; with D_Q_SESSIONS everybody. session_num -1 with D_Q_GRAINS .. D_Q_KILLED: all sessions of
 * the user, but damaged ones, which D_Q_SESSIONS names. Long answers are fetched in several requests:
 * what changes between them may show before or after. Seconds end in _s; -1: not known, or never.
 * Errors of d_query: D_E_SESSION_UNKNOWN, D_E_GRAIN_UNKNOWN, D_E_INVALID. */
enum d_query_type {
    D_Q_SYSTEM, D_Q_HOSTS, D_Q_SESSIONS,
    D_Q_GRAINS, D_Q_READY, D_Q_RUNNING, D_Q_FINISHED, D_Q_KILLED, /* grains of a session, by state */
    D_Q_GRAIN,                                                    /* one, with everything */
    D_Q_HOSTS_ACTIVE, D_Q_HOSTS_DELINQUENT                        /* hosts in that state */
};
struct d_host_row {
    const char *name, *state, *binary_class; /* state: unknown active delinquent dead */
    unsigned host_class;
    int slots, running;
    double last_call_in_s, interval_s, alert_s, limit_s, extended_s, load;
    int64_t free_memory_kb;
    int cores, cores_used;                   /* of the host table; asked for by what runs there */
    int64_t memory_mb, memory_used_mb;
    int connected, drained;                  /* drained: nothing new is started there */
    const char *settings; /* what d_sethost changed against the host table, "slots=0 ..."; may be empty */
    const char *note;     /* for people: what is being waited for; may be empty */
    size_t user_count;    /* who may use it; 0: everybody */
    const char *const *users;
    int64_t blamed;       /* grains that failed there and then finished elsewhere: ever, and since one */
    int blamed_lately;    /* last finished there */
    /* what became of the grains that it was given, since the scheduler's backing store began */
    int64_t launched, finished, failed, given_back;
    double cpu_s;
    const char *confinement; /* of grains there, "accounts,filter,..."; empty: not known yet */
};
struct d_session_row {
    const char *user, *ident, *state;
    int session, ready, running, finished, killed, sent;
    double saved_cpu_s;   /* of its grains, see there */
};
struct d_move_row {
    const char *reason;   /* a word, such as usurped */
    const char *host;     /* that it left */
    const char *detail;   /* for people; may be empty */
    unsigned incarnation; /* of the run that ended so */
    double age_s;         /* -1: before the scheduler's last start */
};
struct d_file_row {
    const char *name;
    uint64_t size;
    const char *digest;   /* SHA-256 in hex; empty: the grain has not ended, or did not make it */
};
struct d_grain_row {
    const char *user, *state, *host, *label, *message;
    int session, grain, starts, restarts, failures, exit_code, signal, result_index;
    unsigned incarnation, host_class; /* incarnation: the number of its latest lease; starts counts those that ran */
    double cpu_s, run_cpu_s; /* of all incarnations; of the present or last one */
    double saved_cpu_s;   /* CPU time that was not spent again, because a run began at a checkpoint (5.4) */
    double last_contact_s, checkpoint_age_s;
    uint64_t out_length, err_length, checkpoint_length;
    int thrash, notice, attempts, cores, memory_mb, wall_s, urgent; /* as submitted */
    /* D_Q_GRAIN only, as label and message; else NULL and 0 */
    char **argv;               /* ends in NULL */
    size_t nogo_count;         /* hosts that it must not be tried on (5.4) */
    const char *const *nogo;
    size_t move_count;         /* the latest times that it changed places, oldest first */
    const struct d_move_row *moves;
    size_t file_count;         /* that it was to bring back */
    const struct d_file_row *files;
};
struct d_info {
    uint64_t epoch, turn;
    int64_t scheduler_pid, up_s, ready, running;
    int hosts_total, hosts_active, sessions_active;
    const char *version;
    size_t host_count, session_count, grain_count;
    struct d_host_row *hosts;
    struct d_session_row *sessions;
    struct d_grain_row *grains;
};
int d_query(int query_type, const char *user, int session_num, int grain_num, struct d_info **info);
void d_query_free(struct d_info *info);

/* One stream of a grain ("out", "err", "checkpoint", "message", "input"), whole, open for reading; empty when there is
 * nothing of it yet. user NULL: the caller. Needs no d_get_auth.
 * Errors: D_E_SESSION_UNKNOWN, D_E_GRAIN_UNKNOWN, D_E_INVALID. */
int d_grain_stream(const char *user, int session_num, int grain_num, const char *stream, FILE **file);

/* C13. A file that a finished grain brought back, open for reading; `name` as in d_grain.outputs. user NULL: the
 * caller. Needs no d_get_auth.
 * Errors: D_E_NOT_FOUND (it did not make it, has not ended, or was not to bring it), D_E_SESSION_UNKNOWN,
 * D_E_GRAIN_UNKNOWN, D_E_INVALID. */
int d_grain_file(const char *user, int session_num, int grain_num, const char *name, FILE **file);

/* C11 (5.6, d_sethost). Changes what a host may do, against the host table. For scheduler_master, root
 * and the owner of a private pool; needs no d_get_auth. Durable when it returns NO_ERROR: what was set
 * outlives restarts and goes before the host table until `reset`. The strings are copied.
 * d_host_change_init: nothing changes. Negative (host_class: 0) stays as it is.
 * Errors of d_sethost: D_E_REFUSED (not permitted), D_E_NOT_FOUND (no such host), D_E_INVALID (nothing is changed,
 * or not interval_s <= alert_s <= limit_s <= extended_s would hold afterwards). */
struct d_host_change {
    int slots;            /* grains at a time. 0 evicts its grains at once, with a checkpoint where possible */
    double interval_s;    /* seconds between its reports */
    double alert_s, limit_s, extended_s; /* silent so long it is delinquent; dead; dead though probes answer */
    unsigned host_class;  /* mask of the classes that it belongs to */
    int drained;          /* 1: nothing new is started there, what runs ends by itself; 0: no longer */
    int reset;            /* not 0: everything as in the host table first; the other fields count on top */
};
void d_host_change_init(struct d_host_change *change);
int d_sethost(const char *host, const struct d_host_change *change);

/* C11 (5.6). Takes a host out of a grain's nogo set, so that the grain is tried there again; of all
 * grains, when session_num and grain_num are both negative. user NULL: the caller. Permission and
 * durability as d_sethost. Needs no d_get_auth.
 * Errors: as d_sethost, D_E_SESSION_UNKNOWN, D_E_GRAIN_UNKNOWN. */
int d_clear_nogo(const char *user, int session_num, int grain_num, const char *host);

/* Why a grain is where it is: above all, why it does not run yet. Changes nothing. For the grain's
 * owner, scheduler_master, root and the owner of a private pool; needs no d_get_auth. user NULL: the
 * caller. The answer is one block that d_explanation_free releases (NULL is allowed); in it only lists
 * without entries are NULL. *explanation is NULL after an error.
 * Errors of d_explain: D_E_REFUSED, D_E_SESSION_UNKNOWN, D_E_GRAIN_UNKNOWN, D_E_INVALID. */
struct d_reason {
    const char *reason;       /* a word, such as other_class; docs/SCHEDULING.md lists them */
    const char *text, *hint;  /* a sentence each: what it is, what to do about it (may be empty) */
    int hosts;                /* for how many hosts it holds; 0: it is about the grain itself */
    size_t name_count;        /* of the first of these hosts */
    const char *const *names;
};
struct d_explanation {
    const char *state, *summary; /* ready running finished killed; one sentence */
    int can_run;                 /* 0: no configured host could ever run it */
    int ahead;                   /* ready: grains before it in its own session's queues; else -1 */
    size_t reason_count;
    const struct d_reason *reasons;
};
int d_explain(const char *user, int session_num, int grain_num, struct d_explanation **explanation);
void d_explanation_free(struct d_explanation *explanation);

/* A ready or running grain begins anew from its last checkpoint, wherever it may run: its failures, its
 * nogo set and what holds it back are forgotten. For whom d_explain is. Durable when it returns
 * NO_ERROR; once more does no harm. Needs no d_get_auth.
 * Errors: D_E_REFUSED (not permitted, or the grain finished or was killed), D_E_SESSION_UNKNOWN,
 * D_E_SESSION_CLOSED, D_E_GRAIN_UNKNOWN, D_E_INVALID. */
int d_grestart(const char *user, int session_num, int grain_num);

/* d_close_ses of a session of `user`, by that user, scheduler_master, root or the pool's owner (3.1, secure commands);
 * whoever holds it learns it with the next call. Needs no d_get_auth, but with user NULL it is d_close_ses.
 * Errors: D_E_REFUSED, D_E_SESSION_UNKNOWN, D_E_INVALID. */
int d_close_ses_of(const char *user, int session_num);

/* d_gkill of a grain of `user`, for the same people. Needs no d_get_auth, but with user NULL it is d_gkill.
 * Errors: D_E_REFUSED, D_E_GRAIN_UNKNOWN, D_E_SESSION_UNKNOWN, D_E_SESSION_CLOSED, D_E_INVALID. */
int d_gkill_of(const char *user, int session_num, int grain_num);

#ifdef __cplusplus
}
#endif
#endif
