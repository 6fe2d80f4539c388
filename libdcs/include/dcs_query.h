/* dcs_query.h: queries about a pool, and commands to it.
 *
 * A part of dcs.h: programs include dcs.h, which describes what all calls have in common.
 *
 * The library allocates an answer with everything that it points to, in the layout of the structs with which this
 * program was compiled. The caller releases it by the named call, which also releases all its strings. */
#ifndef DCS_QUERY_H
#define DCS_QUERY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct d_pool; /* as in dcs.h */

/* The kind of a query. */
enum d_query_type {
    D_Q_SYSTEM,
    D_Q_HOSTS,
    D_Q_SESSIONS,
    D_Q_GRAINS,
    D_Q_READY,
    D_Q_RUNNING,
    D_Q_FINISHED,
    D_Q_KILLED, /* grains of a session, by state */
    D_Q_GRAIN,  /* one, with all fields */
    D_Q_HOSTS_ACTIVE,
    D_Q_HOSTS_DELINQUENT /* hosts in that state */
};
/* Strings are never NULL, unless stated otherwise. Fields in seconds end in _s; -1: unknown, or never. */
struct d_host_row {
    size_t struct_size;
    const char *name, *state, *binary_class; /* state: unknown active delinquent dead no_job */
    unsigned host_class;
    int slots, running;
    int cores, cores_used;  /* of the host table; demanded by grains that run there */
    int connected, drained; /* drained: no new grain is started there */
    int blamed_lately;      /* grains that failed there and then finished elsewhere, since one last finished there */
    double last_call_in_s, interval_s, alert_s, limit_s, extended_s, load;
    int64_t free_memory_kb, memory_mb, memory_used_mb;
    const char *settings; /* that d_sethost changed against the host table, "slots=0 ..."; may be empty */
    const char *note;     /* for display: a pending check; may be empty */
    size_t user_count;    /* users who may use it; 0: all users */
    const char *const *users;
    int64_t blamed; /* as blamed_lately, in total */
    /* of its grains, since the scheduler's backing store was created */
    int64_t launched, finished, failed, given_back;
    double cpu_s;
    const char *confinement; /* of grains there, "accounts,filter,..."; empty: not yet known */
    const char *class_names; /* of host_class, "gpu,0x8"; empty if the host table has no names for it */
    int time_zone_offset;    /* minutes that its local time is ahead of the scheduler's, by the host table */
    int reserved;
    const char *resources;      /* that it offers, "gpu=[0,1],scratch_gb=200"; may be empty */
    const char *resources_used; /* of these, by running grains: "gpu=1"; may be empty */
    const char *drain_reason;   /* as in d_host_change; may be empty */
};
struct d_session_row {
    size_t struct_size;
    const char *user, *ident, *state;
    int session, ready, running, finished, killed, sent; /* its number; numbers of its grains */
    double saved_cpu_s;                                  /* of its grains, as in d_grain_row */
    uint64_t stored_bytes;                               /* that it takes on the scheduler's disk */
};
struct d_move_row {
    size_t struct_size;
    const char *reason;   /* a word, such as usurped */
    const char *host;     /* that it left */
    const char *detail;   /* for display; may be empty */
    double age_s;         /* -1: before the scheduler's last start */
    unsigned incarnation; /* of the run that ended */
    int reserved;
};
struct d_file_row {
    size_t struct_size;
    const char *name;
    uint64_t size;
    const char *digest; /* SHA-256 in hex; empty: the grain has not ended, or did not make the file */
};
struct d_grain_row {
    size_t struct_size;
    const char *user, *state, *host, *label, *message;
    int session, grain, starts, restarts, failures, exit_code, signal, result_index;
    unsigned incarnation, host_class; /* incarnation: the number of its latest lease; starts counts those that ran */
    double cpu_s, run_cpu_s;          /* of all incarnations; of the current or last one */
    double saved_cpu_s;               /* CPU time that runs saved by starting from a checkpoint */
    double last_contact_s, checkpoint_age_s;
    uint64_t out_length, err_length, checkpoint_length;
    int thrash, notice, attempts, cores, memory_mb, wall_s, urgent; /* as submitted */
    int reserved;
    /* D_Q_GRAIN only, as label and message; otherwise NULL and 0 */
    char **argv;       /* ends in NULL */
    size_t nogo_count; /* hosts on which it must not be tried */
    const char *const *nogo;
    size_t move_count; /* its latest moves between hosts, oldest first */
    const struct d_move_row *moves;
    size_t file_count; /* of its outputs */
    const struct d_file_row *files;
    /* resource usage of all its incarnations, as in struct rusage: sums, of max_rss_kb the greatest; in lists too */
    double user_s, system_s;
    int64_t max_rss_kb, minor_faults, major_faults, in_blocks, out_blocks;
    /* D_Q_GRAIN only */
    const char *class_names; /* of host_class, as in d_host_row */
    const char *directory;   /* as submitted; may be empty */
    char **env;              /* as submitted; ends in NULL, and is NULL if it is empty */
    const char *resources;   /* as submitted, in lists too; may be empty */
};
struct d_info {
    size_t struct_size;
    void *of_library; /* private to the library */
    uint64_t epoch, turn;
    int64_t scheduler_pid, up_s, ready, running;
    int hosts_total, hosts_active, sessions_active; /* hosts: without pilots that have no job */
    int last_session;    /* D_Q_SESSIONS: highest number of a removed one; -1: none, or not known */
    const char *version; /* the scheduler's */
    size_t host_count, session_count, grain_count;
    struct d_host_row *hosts;
    struct d_session_row *sessions;
    struct d_grain_row *grains;
    const char *user; /* the caller, by the name that the scheduler has for it */
};
struct d_reason {
    size_t struct_size;
    const char *reason;      /* a word, such as other_class; docs/SCHEDULING.md lists them */
    const char *text, *hint; /* a sentence each: the cause, and what to do about it (may be empty) */
    int hosts;               /* number of hosts that it holds for; 0: it concerns the grain itself */
    int reserved;
    size_t name_count; /* of the first of these hosts */
    const char *const *names;
};
struct d_explanation {
    size_t struct_size;
    void *of_library;            /* private to the library */
    const char *state, *summary; /* ready running finished killed; one sentence */
    int can_run;                 /* 0: no configured host could ever run it */
    int ahead;                   /* ready: grains before it in its session's queues; otherwise -1 */
    size_t reason_count;
    const struct d_reason *reasons;
};

/* The lengths of these structs in this program, which determine the layout of answers. */
struct d_row_sizes {
    size_t struct_size, info, host_row, session_row, grain_row, move_row, file_row, explanation, reason;
};
#define D_ROW_SIZES                                                                                                 \
    {                                                                                                               \
        sizeof(struct d_row_sizes), sizeof(struct d_info), sizeof(struct d_host_row), sizeof(struct d_session_row), \
            sizeof(struct d_grain_row), sizeof(struct d_move_row), sizeof(struct d_file_row),                       \
            sizeof(struct d_explanation), sizeof(struct d_reason)                                                   \
    }

/* Queries the scheduler; changes nothing. Needs no d_get_auth. The caller owns *info and releases it
 * by d_query_free (NULL is allowed); NULL after an error. All rows are returned, in ascending order. user NULL:
 * the caller; with D_Q_SESSIONS all users. session_num -1 with D_Q_GRAINS .. D_Q_KILLED: all sessions of
 * the user except damaged ones, which D_Q_SESSIONS lists. A long answer is fetched by several requests, and
 * a change between them may or may not be in it.
 * Errors of d_query: D_E_SESSION_UNKNOWN, D_E_GRAIN_UNKNOWN, D_E_INVALID. */
int d_pool_query_sized(struct d_pool *pool, const struct d_row_sizes *sizes, int query_type, const char *user,
                       int session_num, int grain_num, struct d_info **info);
static inline int d_pool_query(struct d_pool *pool, int query_type, const char *user, int session_num, int grain_num,
                               struct d_info **info) {
    const struct d_row_sizes sizes = D_ROW_SIZES;
    return d_pool_query_sized(pool, &sizes, query_type, user, session_num, grain_num, info);
}
static inline int d_query(int query_type, const char *user, int session_num, int grain_num, struct d_info **info) {
    return d_pool_query(NULL, query_type, user, session_num, grain_num, info);
}
void d_query_free(struct d_info *info);

/* Opens one complete stream of a grain ("out", "err", "checkpoint", "message", "input") for reading; it is empty if
 * nothing was written yet. The caller owns *file and closes it; NULL after an error. user NULL: the caller. Needs no
 * d_get_auth.
 * Errors: D_E_SESSION_UNKNOWN, D_E_GRAIN_UNKNOWN, D_E_INVALID. */
int d_grain_stream(const char *user, int session_num, int grain_num, const char *stream, FILE **file);
int d_pool_grain_stream(struct d_pool *pool, const char *user, int session_num, int grain_num, const char *stream,
                        FILE **file);

/* Opens an output file of a finished grain for reading; `name` as in d_grain.outputs. *file as from
 * d_grain_stream. user NULL: the caller. Needs no d_get_auth.
 * Errors: D_E_NOT_FOUND (the grain did not make it, has not ended, or has no such output), D_E_SESSION_UNKNOWN,
 * D_E_GRAIN_UNKNOWN, D_E_INVALID. */
int d_grain_file(const char *user, int session_num, int grain_num, const char *name, FILE **file);
int d_pool_grain_file(struct d_pool *pool, const char *user, int session_num, int grain_num, const char *name,
                      FILE **file);

/* The mask of host classes of `names`, for d_grain.host_class: names that the host table declares, or
 * masks, separated by commas ("gpu,0x8"). Needs no d_get_auth. *mask is 0 after an error.
 * Errors: D_E_NOT_FOUND (no such class), D_E_INVALID. */
int d_host_class(const char *names, unsigned *mask);
int d_pool_host_class(struct d_pool *pool, const char *names, unsigned *mask);

/* Explains why a grain is where it is, and above all why it does not run yet. Changes nothing. For the grain's
 * user, scheduler_master, root and the owner of a private pool; needs no d_get_auth. user NULL: the
 * caller. The caller owns *explanation and releases it by d_explanation_free (NULL is allowed); only lists
 * without entries are NULL in it. It is NULL after an error.
 * Errors of d_explain: D_E_REFUSED, D_E_SESSION_UNKNOWN, D_E_GRAIN_UNKNOWN, D_E_INVALID. */
int d_pool_explain_sized(struct d_pool *pool, const struct d_row_sizes *sizes, const char *user, int session_num,
                         int grain_num, struct d_explanation **explanation);
static inline int d_pool_explain(struct d_pool *pool, const char *user, int session_num, int grain_num,
                                 struct d_explanation **explanation) {
    const struct d_row_sizes sizes = D_ROW_SIZES;
    return d_pool_explain_sized(pool, &sizes, user, session_num, grain_num, explanation);
}
static inline int d_explain(const char *user, int session_num, int grain_num, struct d_explanation **explanation) {
    return d_pool_explain(NULL, user, session_num, grain_num, explanation);
}
void d_explanation_free(struct d_explanation *explanation);

/* Settings for d_sethost. After d_host_change_init no field is set. A negative field (host_class: 0) is not set. */
struct d_host_change {
    size_t struct_size;
    int slots;           /* grains at a time. 0 evicts its grains at once, with a checkpoint where possible */
    unsigned host_class; /* mask of its classes */
    double interval_s;   /* seconds between its reports */
    double alert_s, limit_s, extended_s; /* silence after which it is delinquent; dead; dead although probes answer */
    int drained;              /* 1: no grain is started there, running ones end by themselves; 0: undrains it */
    int reset;                /* not 0: first resets all settings to the host table; then the other fields apply */
    const char *drain_reason; /* with drained 1: why, for display, at most 256 bytes; NULL or empty: unchanged */
};
void d_host_change_init_sized(struct d_host_change *change, size_t struct_size);
static inline void d_host_change_init(struct d_host_change *change) {
    d_host_change_init_sized(change, sizeof *change);
}

/* Changes settings of a host that override the host table. For scheduler_master, root
 * and the owner of a private pool; needs no d_get_auth. Durable when it returns D_OK: settings
 * outlive restarts and override the host table until `reset`.
 * Errors: D_E_REFUSED (not permitted), D_E_NOT_FOUND (no such host), D_E_INVALID (no field is set,
 * or interval_s <= alert_s <= limit_s <= extended_s would not hold). */
int d_sethost(const char *host, const struct d_host_change *change);
int d_pool_sethost(struct d_pool *pool, const char *host, const struct d_host_change *change);

/* Removes a host from a grain's nogo set, so that the grain is tried there again; for all
 * grains if session_num and grain_num are both negative. user NULL: the caller. Permission and
 * durability as d_sethost. Needs no d_get_auth.
 * Errors: as d_sethost, D_E_SESSION_UNKNOWN, D_E_GRAIN_UNKNOWN. */
int d_clear_nogo(const char *user, int session_num, int grain_num, const char *host);
int d_pool_clear_nogo(struct d_pool *pool, const char *user, int session_num, int grain_num, const char *host);

/* Restarts a ready or running grain from its last checkpoint, and clears its failures, its
 * nogo set and its rest. For the same users as d_explain. Durable when it returns
 * D_OK; may be repeated. Needs no d_get_auth.
 * Errors: D_E_REFUSED (not permitted, or the grain finished or was killed), D_E_SESSION_UNKNOWN,
 * D_E_SESSION_CLOSED, D_E_GRAIN_UNKNOWN, D_E_INVALID. */
int d_grestart(const char *user, int session_num, int grain_num);
int d_pool_grestart(struct d_pool *pool, const char *user, int session_num, int grain_num);

/* d_close_ses of a session of `user`, by that user, scheduler_master, root or the pool's owner;
 * the program that holds it gets an error from its next call. Needs no d_get_auth; with user NULL it is d_close_ses.
 * Errors: D_E_REFUSED, D_E_SESSION_UNKNOWN, D_E_INVALID. */
int d_close_ses_of(const char *user, int session_num);
int d_pool_close_ses_of(struct d_pool *pool, const char *user, int session_num);

/* d_gkill of a grain of `user`, for the same users. Needs no d_get_auth; with user NULL it is d_gkill.
 * Errors: D_E_REFUSED, D_E_GRAIN_UNKNOWN, D_E_SESSION_UNKNOWN, D_E_SESSION_CLOSED, D_E_INVALID. */
int d_gkill_of(const char *user, int session_num, int grain_num);
int d_pool_gkill_of(struct d_pool *pool, const char *user, int session_num, int grain_num);

#ifdef __cplusplus
}
#endif
#endif
