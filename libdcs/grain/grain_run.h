/* The state of this run, shared by the parts of the grain library. Internal: programs include grainlib.h.
 * Plain C11 and POSIX 2008, libc only, because it is linked into users' programs. */
#ifndef DCS_GRAIN_RUN_H
#define DCS_GRAIN_RUN_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Exit status of a program that uses the library wrongly. Not D_EXIT_WRITE_ERROR, which the scheduler
 * does not count as the program's fault, so it would retry the program for ever. */
#define DCS_GRAIN_EXIT_MISUSE 70

/* Maximum length of a status message; longer ones are truncated. */
#define DCS_GRAIN_MESSAGE_BYTES 4096

/* Room for "checkpoint.4294967295.tmp". */
#define DCS_GRAIN_NAME_BYTES 40

struct dcs_grain_run {
    int known;         /* the environment has been read */
    int served;        /* a grain server started this process */
    uint32_t sequence; /* of the current increments and of the next checkpoint */
    char directory[PATH_MAX];
    int input_copy; /* shares standard input's offset, survives fclose(stdin); or -1 */
    dev_t input_device;
    ino_t input_inode;
    pid_t pid;      /* the process that may take checkpoints */
    int usage_told; /* checkpoints record the following CPU time instead of this process's */
    long long user_us, system_us;
};
extern struct dcs_grain_run dcs_grain_run;

/* Reads the environment once; sets `served`. */
void dcs_grain_begin(void);

/* Reads the grain server's variables; sets `served` if they are present. */
void dcs_grain_read_environment(void);

/* Opens the grain's directory; ends the process on failure. */
int dcs_grain_open_directory(void);

/* Moves a descriptor above the standard streams: a program that has closed these may reuse
 * their numbers. -1 stays -1. */
int dcs_grain_out_of_the_way(int fd);

/* Ends the process because `what` could not be written; errno is the cause. For a full disk and similar errors with
 * D_EXIT_WRITE_ERROR; for a file beyond the limit on its size with SIGXFSZ, as if it were not ignored,
 * because another host would not help. */
_Noreturn void dcs_grain_fail_write(const char *what);
_Noreturn void dcs_grain_fail_misuse(const char *what);

/* Flushes a stream; ends the process if any data written to it was lost. */
void dcs_grain_flush(FILE *stream, const char *what);

/* What another process writes to an increment of standard output after its checkpoint is lost: notes the length that
 * the one before the present has now, and ends the process with DCS_GRAIN_EXIT_MISUSE if one has grown since. */
void dcs_grain_mark_complete(void);
void dcs_grain_check_complete(void);

/* Creates out.S and err.S and redirects descriptors 1 and 2 to them. */
void dcs_grain_next_increments(int directory, uint32_t sequence);

#endif
