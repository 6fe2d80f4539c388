/* A checkpointing grain for tests: reads "next last milliseconds" and prints one line a step, with
 * that much CPU work in each. Its state is the next step; checkpoints are possible after any step. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "grainlib.h"

static void work(long milliseconds) {
    struct timespec t;
    double end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    end = t.tv_sec + t.tv_nsec / 1e9 + milliseconds / 1e3;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    while (t.tv_sec + t.tv_nsec / 1e9 < end);
}

int main(void) {
    long next, last, milliseconds;
    char message[64];
    FILE *checkpoint;

    d_handler();
    if (scanf("%ld %ld %ld", &next, &last, &milliseconds) != 3) {
        fprintf(stderr, "steps: the input is not `next last milliseconds`\n");
        return 2;
    }
    while (next <= last) {
        printf("step %ld\n", next++);
        work(milliseconds);
        if (d_time_to_ckpt()) {
            snprintf(message, sizeof message, "%ld of %ld", next, last);
            checkpoint = d_opencheck(message);
            fprintf(checkpoint, "%ld %ld %ld\n", next, last, milliseconds);
            d_closecheck(checkpoint);
        }
    }
    return 0;
}
