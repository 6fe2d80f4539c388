/* What faulty.c, preloaded into a process, can be ordered to do. Look the functions up by dlsym. */
#ifndef FAULTY_H
#define FAULTY_H

enum faulty_kind { faulty_opens, faulty_writes, faulty_reads, faulty_syncs, faulty_others, faulty_kinds };
enum faulty_fault {
    faulty_error,      /* the call is not made and fails */
    faulty_error_done, /* the call is made and fails all the same */
    faulty_short,      /* a read or write of half the bytes */
    faulty_kill        /* the process is killed instead of the call */
};

struct faulty_plan {
    long at;          /* the number of the call, from 1; 0: none */
    int from_then_on; /* not only that one; EINTR then lets each fourth call pass, as retries may be endless */
    enum faulty_fault fault;
    int error;
};

struct faulty_notes {
    long calls, hits;
    long size;   /* of `kinds`, set by the caller */
    char *kinds; /* [calls]: faulty_kind of each, as far as there is room; may be null */
};

/* Calls on files below `directory` (an absolute path) are counted from now on, and fail as planned. What
 * was opened before is not known: watch first, then open. `notes` may lie in shared memory. */
typedef void faulty_watch_function(const char *directory, const struct faulty_plan *plan, struct faulty_notes *notes);
/* From now on everything works. */
typedef void faulty_stop_function(void);

#endif
