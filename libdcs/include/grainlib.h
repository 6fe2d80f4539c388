/* grainlib.h: make a program a checkpointing grain (paper, section 3.3 and Appendix A).
 *
 * A grain reads its initial state and then its data from standard input, as text. At a point of
 * its main loop where its state is consistent it asks d_time_to_ckpt(); when that says yes it
 * writes its whole state as text between d_opencheck() and d_closecheck(). A restarted grain
 * gets that text followed by the part of the input that it had not read yet.
 *
 * Without a grain server (run by hand in a shell) the program behaves as an ordinary filter:
 * d_time_to_ckpt() is always 0.
 *
 * Not thread-safe: one thread makes all of these calls. Plain C, needs libc only. */
#ifndef DCS_GRAINLIB_H
#define DCS_GRAINLIB_H

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Exit status by which a grain says "my output could not be written here" (disk full): the
 * scheduler starts it elsewhere from its last checkpoint and does not blame it. Believed of a grain that called
 * d_handler; with ten such ends in a row, without a new checkpoint between them, the grain has failed. */
#define D_EXIT_WRITE_ERROR 74

/* Exit status by which a grain says "I took a checkpoint; run me again from it, here or elsewhere".
 * Believed only if this very run took a checkpoint, else it is a failure like any other code. Output
 * written after the checkpoint is dropped: it is written again by the next run. */
#define D_EXIT_AGAIN 85

/* Installs the handlers of the checkpoint signal (SIGUSR1) and the thrash signal (SIGUSR2) and
 * tells the grain server that this grain checkpoints; a grain that did not call it is never sent
 * them. Call it first in main. Harmless without a server. */
void d_handler(void);
void d_ghandler(void); /* the paper's other spelling */

/* 1 once after each checkpoint signal, else 0. Costs one load. */
int d_time_to_ckpt(void);

/* 1 once after each thrash signal: the host pages. A grain that can shrink may do so. */
int d_thrashing(void);

/* Opens the next checkpoint and returns the stream to write the state to. `message` (may be NULL)
 * is shown to people and to d_query until the next checkpoint. The exact offset of standard input
 * that the program consumed through stdio is recorded (not what stdio read ahead). Without a
 * server: a stream whose content is dropped. Never returns NULL: when the checkpoint cannot be
 * created the process exits with D_EXIT_WRITE_ERROR. */
FILE *d_opencheck(const char *message);

/* For programs that read standard input otherwise than by C stdio: the number of bytes consumed,
 * counted from the start of this run's standard input. Call it between d_opencheck and
 * d_closecheck. */
void d_input_offset(long long consumed);

/* Completes the checkpoint: flushes the checkpoint, stdout and stderr and checks every write error
 * (any: exit with D_EXIT_WRITE_ERROR), moves descriptors 1 and 2 to the next output increments
 * (children and other languages follow), then makes the checkpoint visible atomically. Output
 * written before this call belongs to the checkpoint, later output does not. */
void d_closecheck(FILE *checkpoint);

#ifdef __cplusplus
}
#endif
#endif
