/* A grain that hops between kinds of machine: `hop GATE`. Each line of its input is a number r, for which the map
 * x -> r x (1 - x) is iterated; its state holds floating point numbers, exactly. It rests after each line until the
 * file GATE exists, and at a line `wait` it waits for that. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grainlib.h"

static double x = 0.25, sum = 0;
static uint64_t mixed = 1;
static long lines = 0;
static int waiting = 0;

static void checkpoint(void) {
    char message[40];
    snprintf(message, sizeof message, "line %ld", lines);
    FILE *state = d_opencheck(message);
    fprintf(state, "#hop %ld %a %.17g %llu %d\n", lines, x, sum, (unsigned long long)mixed, waiting);
    d_closecheck(state);
}

static void rest(const char *gate) {
    do {
        if (d_time_to_ckpt()) checkpoint();
        if (access(gate, F_OK) == 0) waiting = 0;
        else usleep(20000);
    } while (waiting);
}

static void work(const char *text) {
    const double r = strtod(text, NULL);
    for (int i = 0; i < 2000; i++) x = r * x * (1 - x);
    sum += x / 3;
    /* Characters are signed on one kind of machine and not on the other; both print the same here. */
    for (const char *p = text; *p != '\0'; p++) mixed = mixed * 6364136223846793005u + (unsigned char)*p;
    printf("%ld %.17g %a %llu\n", ++lines, x, sum, (unsigned long long)mixed);
}

int main(int argc, char **argv) {
    char text[200];
    unsigned long long number;
    d_handler();
    if (argc != 2) return 2;
    while (fgets(text, sizeof text, stdin) != NULL) {
        if (lines == 0 && sscanf(text, "#hop %ld %la %lg %llu %d", &lines, &x, &sum, &number, &waiting) == 5)
            mixed = number;
        else if (strcmp(text, "wait\n") == 0) waiting = 1;
        else work(text);
        rest(argv[1]);
    }
    printf("end %ld %a %.17g %llu\n", lines, x, sum, (unsigned long long)mixed);
    return 0;
}
