/* A checkpointing grain whose memory grows: reads "next last base_mb step_kb milliseconds", takes base_mb, and for
 * each tick step_kb more; prints a line and sleeps. A restarted one begins with little memory again, but goes on
 * with the lines, and faster. Warned that the host pages, it makes the file that it was given as its argument. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "grainlib.h"

static char *volatile latest; /* so that the compiler leaves the memory in */

static void take(size_t bytes) {
    latest = malloc(bytes);
    if (latest != NULL) memset(latest, 1, bytes);
}

int main(int argc, char **argv) {
    long next, last, base_mb, step_kb, milliseconds;

    d_handler();
    if (scanf("%ld %ld %ld %ld %ld", &next, &last, &base_mb, &step_kb, &milliseconds) != 5) return 2;
    take((size_t)base_mb << 20);
    while (next <= last) {
        struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000};
        take((size_t)step_kb << 10);
        printf("tick %ld\n", next++);
        while (nanosleep(&t, &t) != 0) continue;
        if (d_thrashing() && argc > 1) {
            FILE *warned = fopen(argv[1], "w");
            if (warned != NULL) fclose(warned);
        }
        if (d_time_to_ckpt()) {
            FILE *checkpoint = d_opencheck("");
            fprintf(checkpoint, "%ld %ld %ld %ld %ld\n", next, last, base_mb, step_kb, milliseconds / 5);
            d_closecheck(checkpoint);
        }
    }
    return 0;
}
