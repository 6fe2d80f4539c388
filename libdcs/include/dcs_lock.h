/* dcs_lock.h: adaptive locks, a first-come-first-served lock and counted slots, for programs in C and C++. Link
 * with -ldcs. "Section" refers to M. Burgess, D. Skipitaris: Adaptive Locks For Frequently Scheduled Tasks With
 * Unpredictable Runtimes, LISA 1997. docs/LOCKS.md describes the design. The command dcs_lock offers the same locks
 * to scripts and uses the same files.
 *
 * The object of a lock is an atom: an operator ("edit"), an operand ("/etc/motd") and a host. Every run must use the
 * same name. Different atoms never share a lock, whatever bytes their names contain. A part of a name is at most
 * 16 KiB long and contains no NUL.
 * Lock files are kept in $DCS_LOCK_DIR; by default in /var/lib/dcs-lock for root, and for other users in
 * $XDG_STATE_HOME/dcs-lock or, if XDG_STATE_HOME is not set, in ~/.local/state/dcs-lock.
 *
 * Return values: except for GetLock, every function that returns int returns D_LOCK_GRANTED (0) or another value of
 * enum d_lock_reason, unless its comment states otherwise. d_lock_errortext() then describes the error in one line:
 * what was denied, why, and which process holds the lock.
 *
 * Durability: the kernel holds a lock for the calling process and for the processes forked from it. The lock is
 * released when none of them has it any longer, however they ended; killing a process therefore releases its locks.
 * The records (last runs, run log) survive a reboot. They are not synced: a crash of the machine may lose those
 * of the last seconds, and a run that was done in those seconds may then be granted again.
 *
 * Thread safety: all functions may be called from any thread. A lock belongs to no thread: any thread may release it,
 * but two threads must not release it at the same time. Two threads exclude each other as two processes do. After a
 * fork the child shares the parent's locks: a lock is held until both processes have abandoned it or ended, or until
 * one of them calls d_lock_release. A program started by exec does not inherit the locks (their descriptors are
 * close-on-exec; see d_lock_fd).
 *
 * Structs begin with struct_size, which the init functions set, so that later versions can add members; see dcs.h.
 *
 * Ownership: a d_lock or d_slots belongs to the caller until it is released or abandoned, which frees it. Strings are
 * copied. A wait with a time limit uses the highest real-time signal below SIGRTMAX that the program does not handle or
 * block, whose handler must not be replaced during the wait; other signals do not end a wait. pthread_cancel does not
 * end a thread in a call, also in a wait, but after it. */
#ifndef DCS_LOCK_H
#define DCS_LOCK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

enum d_lock_reason {
    D_LOCK_GRANTED = 0,
    D_LOCK_BUSY = 1,          /* another holder has the lock, and has not exceeded expireafter */
    D_LOCK_TOO_SOON = 2,      /* the last run was less than ifelapsed ago */
    D_LOCK_NOT_PERMITTED = 3, /* expired, but the holder is a process of another user */
    D_LOCK_OWN_ANCESTOR = 4,  /* expired, but the holder is the calling process or an ancestor of it (Figure 4) */
    D_LOCK_UNKILLABLE = 5,    /* expired, but the holder does not end; try again later */
    D_LOCK_ELSEWHERE = 6,     /* expired, but the holder runs on another host or in another pid namespace */
    D_LOCK_GIVING_UP = 7,     /* expired max_kills times in a row: an operator must intervene */
    D_LOCK_FAILED = 8,        /* invalid argument, or an error of the lock itself; nothing is locked */
    D_LOCK_LIMIT = 9          /* the permitted number of instances is running */
};
/* The word for a reason, and the text of an error. */
const char *d_lock_reason_word(int reason); /* "granted", "busy", "too-soon", ...; static, never NULL */
const char *d_lock_errortext(void);         /* this thread's last denial or error; valid until its next call */

/* Limits are in nanoseconds; these values have a special meaning. */
#define D_LOCK_SECOND INT64_C(1000000000)
#define D_LOCK_MINUTE (60 * D_LOCK_SECOND)
#define D_LOCK_AUTO INT64_C(-1)  /* learned from the runs and denials of this atom (section Conclusions) */
#define D_LOCK_NEVER INT64_MAX   /* expireafter: a holder is never ended. ifelapsed: one run only */
#define D_LOCK_FOREVER INT64_MAX /* wait: no time limit */

/* --- the paper's calls (section Implementation, Figure 3) ------------------------------------------
 *
 * These names have no prefix; they are not declared if DCS_NO_PAPER_NAMES is defined.
 *
 * Returns 1 if the lock is granted: the caller holds the atom until ReleaseCurrentLock. Returns 0 if it is denied:
 * d_lock_errortext() gives the reason.
 * ifelapsed, expireafter: minutes, D_LOCK_AUTO, or D_LOCK_NEVER_MINUTES for never. Other negative values are invalid,
 * and so is expireafter 0, which would end every holder at once. The paper's rule of thumb is
 * expireafter > interval >= ifelapsed; for an hourly job, for example, 90 and 15 minutes.
 * host: NULL or "" is the local host.
 * now: the start of this pass of the program, so that all its atoms are judged at one time; 0 is the current time.
 * An atom that was run since `now` is denied. A `now` in the future counts as the current time.
 *
 * The request is denied, in this order, if another holder has had the atom for less than expireafter, or if the last
 * run ended less than ifelapsed ago. A holder that has exceeded expireafter is ended with its whole process tree, by
 * CONT, INT, TERM and KILL with pauses of seconds in between, and the request is granted. */
#define D_LOCK_NEVER_MINUTES INT64_C(150000000)
#ifndef DCS_NO_PAPER_NAMES
int GetLock(const char *operator_, const char *operand, long ifelapsed, long expireafter, const char *host, time_t now);

/* Releases the lock of this thread's latest GetLock that is not yet released; calls of GetLock may be nested.
 * D_LOCK_FAILED: there is no such lock. A program that ends without this call is recorded as crashed. */
int ReleaseCurrentLock(void);
#endif

/* --- the full interface ------------------------------------------------------------------------
 *
 * d_lock_init sets the defaults of a request, d_lock_answer_init the size of an answer. Call both before d_lock_get.
 * The caller owns the structs. */
typedef struct d_lock d_lock;

struct d_lock_request {
    size_t struct_size;
    const char *operator_, *operand, *host; /* operand and host may be NULL */
    const char *path;     /* not NULL: use this file, created if missing, as the lock; the path must contain a '/'.
                             * A file that is not a lock file is locked but never written, so limits and queue are
                             * refused for it */
    int64_t if_elapsed;   /* default 0: no minimum time between runs */
    int64_t expire_after; /* default D_LOCK_NEVER */
    int64_t expire_max;   /* with D_LOCK_AUTO: upper bound of the learned limit; 0: one day */
    int64_t interval;     /* with D_LOCK_AUTO: scheduling interval of the task; 0: not known */
    int64_t now;          /* start of the pass in nanoseconds since 1970; 0: the current time */
    int64_t wait;         /* how long to wait for a busy atom; default 0; D_LOCK_FOREVER. D_LOCK_TOO_SOON is returned
                             * without waiting */
    int64_t grace[3];     /* pauses after INT, TERM and KILL; default 2, 5 and 10 s */
    int max_kills;        /* holders ended in a row within an hour before D_LOCK_GIVING_UP; default 3 */
    int since_start;      /* not 0: elapsed time counts from the start of the last run, else from its end */
    int queue;            /* not 0: wait in order of arrival; only the first in the queue ends an expired holder */
    int shared;           /* not 0: a shared lock. It is not recorded as a run, and the request ends no holder */
    int instances;        /* not 0: limit on the holders of atoms of this operator on this host at a time (section
                             * Adaptive Locks In cfengine). The slot and the atom are granted both or not at all */
    int literal;          /* not 0: the paper's own arithmetic, in whole minutes. For comparison only */
};
void d_lock_init_sized(struct d_lock_request *request, size_t struct_size);
static inline void d_lock_init(struct d_lock_request *request) /* sets the defaults; must be called first */
{
    d_lock_init_sized(request, sizeof *request);
}

struct d_lock_answer { /* initialised by d_lock_answer_init */
    size_t struct_size;
    int reason;         /* as returned */
    int took_over;      /* granted by ending an expired holder */
    int after_crash;    /* the previous holder ended without releasing the lock */
    int clock_stepped;  /* the last run is dated in the future, so it was ignored */
    int done_since;     /* D_LOCK_TOO_SOON: the atom was run since the start of this pass */
    uint64_t token;     /* fencing token of a granted lock: increases with each grant of the atom. Pass it on with
                             * the work, and let the resource reject a token lower than the highest it has seen */
    int64_t elapsed;    /* since the last run; -1: there was none */
    int64_t age;        /* of the holder's run */
    int64_t again_in;   /* time until the request would be granted or the holder expires; D_LOCK_NEVER: no limit */
    int64_t soft, hard; /* granted: expireafter in force; `hard` is for a supervised holder that makes progress */
    pid_t holder;       /* the present or the last holder; 0: not known */
    uid_t holder_uid;
    char holder_host[64], holder_command[64];
};
static inline void d_lock_answer_init(struct d_lock_answer *answer) {
    memset(answer, 0, sizeof *answer);
    answer->struct_size = sizeof *answer;
}

/* Requests a lock. answer may be NULL. *lock is set if the return value is D_LOCK_GRANTED; otherwise it is NULL. */
int d_lock_get(const struct d_lock_request *request, struct d_lock_answer *answer, d_lock **lock);

/* Releases the lock at once, also for forked children. succeeded: 0 records the run as failed. */
int d_lock_release(d_lock *lock, int succeeded);
/* Closes this process's share and records no end of the run; forked children keep the lock. */
void d_lock_abandon(d_lock *lock);
/* Called by the child after a fork: records it as the holder, the process that is ended when the lock expires. */
int d_lock_adopt(d_lock *lock);
/* The descriptor that holds the lock, to pass it on through exec (clear FD_CLOEXEC). Do not read, write, unlock or
 * close it. */
int d_lock_fd(const d_lock *lock);
uint64_t d_lock_token(const d_lock *lock);

/* Reports the holder of an atom and its last run. Takes no lock and creates no file. Returns D_LOCK_GRANTED or
 * D_LOCK_FAILED. */
struct d_lock_state { /* initialised by d_lock_state_init */
    size_t struct_size;
    int exists, held, shared;
    int waiting; /* number of waiters in the queue */
    uint64_t token;
    pid_t holder; /* of the present or the last run */
    uid_t holder_uid;
    char holder_host[64], holder_command[64];
    char outcome[16];       /* "running", "done", "failed", "expired", "crashed", "lost", "none" */
    int64_t started, ended; /* nanoseconds since 1970; ended: of the last run that ended; 0: never */
};
static inline void d_lock_state_init(struct d_lock_state *state) {
    memset(state, 0, sizeof *state);
    state->struct_size = sizeof *state;
}
int d_lock_look(const char *operator_, const char *operand, const char *host, struct d_lock_state *state);

/* --- first come, first served ------------------------------------------------------------------------
 *
 * A critical section that is entered in order of arrival. A waiter that dies is skipped; waiters sleep in the kernel.
 * wait: nanoseconds, 0 or D_LOCK_FOREVER. D_LOCK_BUSY: the time is over, and the caller has left the queue. */
int d_lock_enter(const char *name, int64_t wait, d_lock **lock);
int d_lock_leave(d_lock *lock);

/* --- counted slots -------------------------------------------------------------------------------------
 *
 * Takes one slot in each of `count` limits, all or none. A limit is a name, and not also the operator of a lock without
 * operand; at most limits[i] slots of names[i] are held at a time (0: none). The number may differ from call to call,
 * and all present holders count. D_LOCK_LIMIT: a limit is full. Waiters are served in order of arrival. note: listings
 * show its first 64 bytes; may be NULL. */
typedef struct d_slots d_slots;
int d_slot_take(const char *const names[], const int limits[], size_t count, int64_t wait, const char *note,
                d_slots **slots);
int d_slot_number(const d_slots *slots, size_t which); /* number of the slot in its limit, from 0; -1: no such slot */
int d_slot_fd(const d_slots *slots, size_t which);     /* as d_lock_fd */
int d_slot_release(d_slots *slots);

struct d_slot_holder { /* initialised by d_slot_holder_init */
    size_t struct_size;
    int number;
    pid_t pid; /* 0: not known */
    uid_t uid;
    int64_t since; /* nanoseconds since 1970 */
    char command[64], note[72];
};
static inline void d_slot_holder_init(struct d_slot_holder *holders, size_t count) /* of one, or an array */
{
    memset(holders, 0, count * sizeof *holders);
    for (; count > 0; --count) holders[count - 1].struct_size = sizeof *holders;
}
/* Stores the first `room` holders in `holders`, and the number of all holders in *count: 0 of a limit never used. */
int d_slot_list(const char *name, struct d_slot_holder *holders, size_t room, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
