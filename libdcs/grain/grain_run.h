/* What the parts of the grain library know of this run. Internal: programs include grainlib.h.
 * Plain C11 and POSIX 2008, libc only: it runs inside users' programs. */
#ifndef DCS_GRAIN_RUN_H
#define DCS_GRAIN_RUN_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Exit status of a program that uses the library wrongly. Not D_EXIT_WRITE_ERROR: the scheduler
 * calls that one innocent and would try the program for ever. */
#define DCS_GRAIN_EXIT_MISUSE 70

/* Longest status message that is kept; the rest is cut off. */
#define DCS_GRAIN_MESSAGE_BYTES 4096

/* Room for "checkpoint.4294967295.tmp". */
#define DCS_GRAIN_NAME_BYTES 40

struct dcs_grain_run {
    int known;              /* the environment was looked at */
    int served;             /* a grain server started this very process */
    uint32_t sequence;      /* of the increments in use and of the next checkpoint */
    char directory[PATH_MAX];
    int input_copy;         /* shares standard input's offset, survives fclose(stdin); or -1 */
    dev_t input_device;
    ino_t input_inode;
    pid_t pid;              /* of the process that may take checkpoints */
    int usage_told;         /* the CPU time in checkpoints is not this process's but the following */
    long long user_us, system_us;
};
extern struct dcs_grain_run dcs_grain_run;

/* Looks at the environment once; sets `served`. */
void dcs_grain_begin(void);

/* What the grain server said in the environment; sets `served` if it did. */
void dcs_grain_read_environment(void);

/* The grain's directory, open; ends the process when it cannot be opened. */
int dcs_grain_open_directory(void);

/* The same file under a number that is none of the standard streams': a program that closed those would else
 * have it moved away from under us. -1 stays -1. */
int dcs_grain_out_of_the_way(int fd);

/* Ends the process because `what` could not be written; errno says why. Disk full and the like:
 * D_EXIT_WRITE_ERROR. A file beyond the limit on its size: SIGXFSZ, as if it were not ignored,
 * because another host would not help. */
_Noreturn void dcs_grain_fail_write(const char *what);
_Noreturn void dcs_grain_fail_misuse(const char *what);

/* Flushes a stream; ends the process when anything ever written to it was lost. */
void dcs_grain_flush(FILE *stream, const char *what);

/* Creates out.S and err.S and moves descriptors 1 and 2 there. */
void dcs_grain_next_increments(int directory, uint32_t sequence);

/* Bytes of this run's standard input that the program consumed; -1: cannot be told. */
long long dcs_grain_stdin_position(void);

/* CRC-32 as in IEEE 802.3; begin with 0 and continue with the last result. */
uint32_t dcs_grain_crc32(uint32_t crc, const void *bytes, size_t length);

#endif
