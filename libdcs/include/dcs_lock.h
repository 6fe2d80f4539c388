/* dcs_lock.h: adaptive locks, a first-come-first-served lock and counted slots, for programs in C and C++. Link
 * with -ldcs. "Section" means M. Burgess, D. Skipitaris: Adaptive Locks For Frequently Scheduled Tasks With
 * Unpredictable Runtimes, LISA 1997. docs/LOCKS.md says how it works; the command dcs_lock does the same for
 * scripts, with the same files.
 *
 * What is locked is an atom: an operator ("edit"), an operand ("/etc/motd") and a host. Its name must be the same
 * at each run. Different atoms never share a lock, whatever bytes their names hold (but no NUL; at most 16 KiB each).
 * Locks lie in $DCS_LOCK_DIR, else /var/lib/dcs-lock for root, else $XDG_STATE_HOME/dcs-lock, else
 * ~/.local/state/dcs-lock.
 *
 * Returns: every call that returns int returns D_LOCK_GRANTED (0) or another enum d_lock_reason, but for GetLock.
 * d_lock_errortext() then says in one line what, why, and who has it.
 *
 * Durability: a lock is held by the kernel for this process and for what was forked from it, and is free
 * as soon as none of them has it any more, however they ended. A process that is killed frees its locks. What is
 * recorded (last runs, the run log) outlives a boot; it is not synced, so a crash of the machine may lose
 * the last seconds of it, and then a run may be granted again that was done just before.
 *
 * Thread-safe: all calls. A lock belongs to no thread: another may release it, but not two at once. Two threads
 * exclude each other like two processes. After a fork the child has the parent's locks too: the lock is
 * held until both have released it or ended, or one of them called d_lock_release. What is executed does not inherit
 * the locks (their descriptors are closed on exec; see d_lock_fd).
 *
 * Structs begin with struct_size, which their init calls set, so that they may grow: as dcs.h says it.
 *
 * Ownership: a d_lock or d_slots is the caller's until it is released or abandoned, which frees it. Strings are
 * copied. Waits use the signal SIGRTMAX-1, whose handler must not be replaced meanwhile; other signals do not
 * end a wait. */
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
    D_LOCK_BUSY = 1,          /* somebody has it, and not for longer than expireafter */
    D_LOCK_TOO_SOON = 2,      /* it was run less than ifelapsed ago */
    D_LOCK_NOT_PERMITTED = 3, /* expired, but its holder is another user's process */
    D_LOCK_OWN_ANCESTOR = 4,  /* expired, but its holder is this process or an ancestor of it (Figure 4) */
    D_LOCK_UNKILLABLE = 5,    /* expired, but its holder does not end; try again later */
    D_LOCK_ELSEWHERE = 6,     /* expired, but its holder runs on another host or in another pid namespace */
    D_LOCK_GIVING_UP = 7,     /* expired again and again: somebody must look at it */
    D_LOCK_FAILED = 8,        /* a bad argument, or the lock itself failed; nothing is locked */
    D_LOCK_LIMIT = 9          /* as many instances run as are allowed */
};
/* A reason in words. */
const char *d_lock_reason_word(int reason); /* "granted", "busy", "too-soon", ...; static, never NULL */
const char *d_lock_errortext(void);         /* this thread's last refusal or failure; valid until its next call */

/* Limits in nanoseconds, and what they may be instead of a number. */
#define D_LOCK_SECOND INT64_C(1000000000)
#define D_LOCK_MINUTE (60 * D_LOCK_SECOND)
#define D_LOCK_AUTO INT64_C(-1)     /* learned from the runs and refusals of this atom (section Conclusions) */
#define D_LOCK_NEVER INT64_MAX      /* expireafter: never ends anybody. ifelapsed: once and never again */
#define D_LOCK_FOREVER INT64_MAX    /* wait: as long as it takes */

/* --- the paper's calls (section Implementation, Figure 3) ------------------------------------------
 *
 * Not declared where DCS_NO_PAPER_NAMES is defined, for they have no prefix.
 *
 * 1: granted, the atom is the caller's until ReleaseCurrentLock. 0: denied, d_lock_errortext() says why.
 * ifelapsed, expireafter: minutes; D_LOCK_AUTO is allowed, other negative values and expireafter 0 are not
 * (0 would end every holder at once). D_LOCK_NEVER_MINUTES: never. The paper's rule of thumb is
 * expireafter > interval >= ifelapsed, for an hourly job 15 and 90.
 * host: NULL or "" is this one.
 * now: when this pass of the program began, so that its atoms are judged alike; 0 is this moment. What was done
 * since `now` is not done again. It cannot lie in the future.
 *
 * Denied, in this order: somebody has the atom for less than expireafter; it ended less than ifelapsed ago. Who has it
 * for longer is ended, its whole tree of processes, with CONT, INT, TERM and KILL and pauses of seconds in
 * between, and the atom is the caller's. */
#define D_LOCK_NEVER_MINUTES INT64_C(150000000)
#ifndef DCS_NO_PAPER_NAMES
int GetLock(const char *operator_, const char *operand, long ifelapsed, long expireafter, const char *host,
            time_t now);

/* Releases what this thread's latest GetLock took and did not release yet; GetLocks may be nested.
 * D_LOCK_FAILED: there is none. A program that ends without it has crashed, as far as the record goes. */
int ReleaseCurrentLock(void);
#endif

/* --- the same with everything ------------------------------------------------------------------
 *
 * Gives a request its defaults and an answer its size: always before d_lock_get. The structs are the caller's. */
typedef struct d_lock d_lock;

struct d_lock_request {
    size_t struct_size;
    const char *operator_, *operand, *host; /* operand and host may be NULL */
    const char *path;       /* not NULL: the lock is this file, with a '/' in its name and made if missing. Somebody
                             * else's file is locked and never written, so limits and queue are refused */
    int64_t if_elapsed;     /* default 0: no guard against repetition */
    int64_t expire_after;   /* default D_LOCK_NEVER */
    int64_t expire_max;     /* with D_LOCK_AUTO: never learn to wait longer; 0: a day */
    int64_t interval;       /* with D_LOCK_AUTO: how often this is scheduled, if you know; 0: not known */
    int64_t now;            /* start of the pass in nanoseconds since 1970; 0: this moment */
    int64_t wait;           /* for a busy atom; default 0; D_LOCK_FOREVER. Not for one that was run too recently */
    int64_t grace[3];       /* pauses after INT, TERM and KILL; default 2, 5 and 10 s */
    int max_kills;          /* in a row within an hour, then D_LOCK_GIVING_UP; default 3 */
    int since_start;        /* not 0: elapsed time counts from the start of the last run, else from its end */
    int queue;              /* not 0: wait in order of arrival; only the first in the queue ends an expired holder */
    int shared;             /* not 0: with others that ask so; no run of the atom, and ends nobody */
    int instances;          /* not 0: at most so many holders of atoms of this operator on this host at a time
                             * (section Adaptive Locks In cfengine): such a slot and the atom, both or none */
    int literal;            /* not 0: the paper's own arithmetic, in whole minutes. For comparison only */
};
void d_lock_init_sized(struct d_lock_request *request, size_t struct_size);
static inline void d_lock_init(struct d_lock_request *request) /* the defaults; always call it first */
{
    d_lock_init_sized(request, sizeof *request);
}

struct d_lock_answer {      /* by d_lock_answer_init */
    size_t struct_size;
    int reason;             /* as returned */
    int took_over;          /* granted by ending a holder that had expired */
    int after_crash;        /* the holder before died without releasing it */
    int clock_stepped;      /* the last run lay in the future, so it did not count */
    int done_since;         /* D_LOCK_TOO_SOON: done since the pass began */
    uint64_t token;         /* granted: grows with each grant of the atom. Hand it on with the work, and let what
                             * is worked on refuse a lower one than the highest that it saw */
    int64_t elapsed;        /* since the last run; -1: there was none */
    int64_t age;            /* of the holder */
    int64_t again_in;       /* until it would be granted, or its holder expires; D_LOCK_NEVER: not by time */
    int64_t soft, hard;     /* granted: expireafter in force; for a supervised holder that makes progress `hard` */
    pid_t holder;           /* who has it, or had it last; 0: not known */
    uid_t holder_uid;
    char holder_host[64], holder_command[64];
};
static inline void d_lock_answer_init(struct d_lock_answer *answer)
{
    memset(answer, 0, sizeof *answer);
    answer->struct_size = sizeof *answer;
}

/* answer may be NULL. *lock is set when it returns D_LOCK_GRANTED, to NULL otherwise. */
int d_lock_get(const struct d_lock_request *request, struct d_lock_answer *answer, d_lock **lock);

/* succeeded: 0 is recorded as a run that failed. Free at once, also for forked children. */
int d_lock_release(d_lock *lock, int succeeded);
/* Closes this process's share without a word: it lives on in forked children. */
void d_lock_abandon(d_lock *lock);
/* After a fork, in the child: it is the one who works now, so it is the one who is ended when the lock expires. */
int d_lock_adopt(d_lock *lock);
/* The descriptor that holds the lock, to hand it on through exec (clear FD_CLOEXEC). Neither read, write, unlock
 * nor close it. */
int d_lock_fd(const d_lock *lock);
uint64_t d_lock_token(const d_lock *lock);

/* Who has an atom and when it ran last, without taking or making anything. D_LOCK_FAILED, or D_LOCK_GRANTED. */
struct d_lock_state {       /* by d_lock_state_init */
    size_t struct_size;
    int exists, held, shared;
    int waiting;            /* places in the queue */
    uint64_t token;
    pid_t holder;           /* of the present or of the last run */
    uid_t holder_uid;
    char holder_host[64], holder_command[64];
    char outcome[16];       /* "running", "done", "failed", "expired", "crashed", "lost", "none" */
    int64_t started, ended; /* nanoseconds since 1970; ended: of the last run that ended; 0: never */
};
static inline void d_lock_state_init(struct d_lock_state *state)
{
    memset(state, 0, sizeof *state);
    state->struct_size = sizeof *state;
}
int d_lock_look(const char *operator_, const char *operand, const char *host, struct d_lock_state *state);

/* --- first come, first served ------------------------------------------------------------------------
 *
 * The critical section of the one who came first; whoever dies in the queue is skipped, and waiters sleep in the
 * kernel. wait: nanoseconds, 0 or D_LOCK_FOREVER. D_LOCK_BUSY: not in time, and the place is given up. */
int d_lock_enter(const char *name, int64_t wait, d_lock **lock);
int d_lock_leave(d_lock *lock);

/* --- counted slots -------------------------------------------------------------------------------------
 *
 * One slot in each of `count` limits, all or none; each limit is a name, of which at most limits[i] are held at a time
 * (0: none). A limit may differ from call to call, and counts all who hold one. D_LOCK_LIMIT: full. Waiters are
 * served in order of arrival. note: for people, at most 64 bytes, may be NULL. */
typedef struct d_slots d_slots;
int d_slot_take(const char *const names[], const int limits[], size_t count, int64_t wait, const char *note,
                d_slots **slots);
int d_slot_number(const d_slots *slots, size_t which);  /* in its limit, from 0; -1: no such */
int d_slot_fd(const d_slots *slots, size_t which);      /* as d_lock_fd */
int d_slot_release(d_slots *slots);

struct d_slot_holder {      /* by d_slot_holder_init */
    size_t struct_size;
    int number;
    pid_t pid;              /* 0: not known */
    uid_t uid;
    int64_t since;          /* nanoseconds since 1970 */
    char command[64], note[72];
};
static inline void d_slot_holder_init(struct d_slot_holder *holders, size_t count) /* of one, or an array */
{
    memset(holders, 0, count * sizeof *holders);
    for (; count > 0; --count) holders[count - 1].struct_size = sizeof *holders;
}
/* The first `room` holders go to `holders`, and *count says how many there are. */
int d_slot_list(const char *name, struct d_slot_holder *holders, size_t room, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
