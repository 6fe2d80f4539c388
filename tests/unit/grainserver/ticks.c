/* A checkpointing grain that passes time without using the CPU: reads "next last milliseconds", prints one
 * line and then sleeps that long, for each tick. */
#include <stdio.h>
#include <time.h>

#include "grainlib.h"

int main(void) {
    long next, last, milliseconds;
    char message[64];

    d_handler();
    if (scanf("%ld %ld %ld", &next, &last, &milliseconds) != 3) return 2;
    while (next <= last) {
        struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000};
        printf("tick %ld\n", next++);
        while (nanosleep(&t, &t) != 0) continue; /* the checkpoint signal ends a sleep */
        if (d_time_to_ckpt()) {
            FILE *checkpoint;
            snprintf(message, sizeof message, "%ld of %ld", next, last);
            checkpoint = d_opencheck(message);
            fprintf(checkpoint, "%ld %ld %ld\n", next, last, milliseconds);
            d_closecheck(checkpoint);
        }
    }
    return 0;
}
