/* grainlib.h: make a program a checkpointing grain (paper, section 3.3 and Appendix A).
 *
 * A grain reads its initial state and then its data from standard input, as text. At a point of
 * its main loop where its state is consistent it calls d_time_to_ckpt(); if that returns 1 it
 * writes its complete state as text between d_opencheck() and d_closecheck(). A restarted grain
 * reads that text, followed by the part of the input that it had not read.
 *
 * Without a grain server (run in a shell) the program is an ordinary filter:
 * d_time_to_ckpt() is always 0.
 *
 * Not thread-safe: one thread makes all of these calls. Plain C, needs libc only. */
#ifndef DCS_GRAINLIB_H
#define DCS_GRAINLIB_H

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Exit status for "my output could not be written on this host" (disk full): the
 * scheduler starts the grain on another host from its last checkpoint and does not count a failure. Valid for a grain
 * that called d_handler; after ten such ends in a row without a new checkpoint the grain has failed. */
#define D_EXIT_WRITE_ERROR 74

/* Exit status for "I took a checkpoint; run me again from it, on any host".
 * Valid only if this run took a checkpoint; otherwise it is a failure like any other code. Output
 * written after the checkpoint is discarded: the next run writes it again. */
#define D_EXIT_AGAIN 85

/* Installs the handlers of the checkpoint signal (SIGUSR1) and the thrash signal (SIGUSR2) and
 * tells the grain server that this grain takes checkpoints; a grain that did not call it never gets
 * these signals. Call it first in main. It has no effect without a server. */
void d_handler(void);
void d_ghandler(void); /* the paper's other spelling */

/* Returns 1 once after each checkpoint signal, otherwise 0. Costs one load. */
int d_time_to_ckpt(void);

/* Returns 1 once after each thrash signal: the host pages. A grain may reduce its memory. */
int d_thrashing(void);

/* Opens the next checkpoint and returns the stream for the state. `message` (may be NULL)
 * is shown by commands and d_query until the next checkpoint. The offset in standard input
 * up to which the program has read through stdio is recorded (without stdio's read-ahead). Without a
 * server the stream's content is discarded. Never returns NULL: if the checkpoint cannot be
 * created the process exits with D_EXIT_WRITE_ERROR. */
FILE *d_opencheck(const char *message);

/* For programs that do not read standard input by C stdio: sets the number of bytes consumed,
 * counted from the start of this run's standard input. Call it between d_opencheck and
 * d_closecheck. */
void d_input_offset(long long consumed);

/* Completes the checkpoint: flushes the checkpoint, stdout and stderr and checks every write error
 * (any: exit with D_EXIT_WRITE_ERROR), moves descriptors 1 and 2 to the next output increments
 * (other languages and children that start later follow; what older children and copies of the
 * descriptors write is lost, and the process exits with 70 at the next checkpoint or the end, if that
 * was standard output), then makes the checkpoint visible atomically. Output written before this call
 * belongs to the checkpoint, later output does not. State and output since the checkpoint before have
 * at most 64 MiB together: a grain with more ends with signal 25. */
void d_closecheck(FILE *checkpoint);

#ifdef __cplusplus
}
#endif
#endif
