/* The ledger grain in C: copies the lines of its input with their number and a sum over the lengths of all
 * lines so far, so that a line lost or read twice shows in everything that follows. ledger.cc, ledger.py and
 * ledger.sh do the same, with the same state: a ledger may go on in any of the languages.
 * Usage: ledger [PAUSE [EVERY [how]]]: rests a moment after each PAUSE lines, takes a checkpoint unasked after
 * each EVERY lines; "again": ends with D_EXIT_AGAIN after each checkpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "grainlib.h"

static unsigned long lines = 0, sum = 0;

static void checkpoint(const char *how) {
    char message[40];
    snprintf(message, sizeof message, "line %lu", lines);
    FILE *state = d_opencheck(message);
    fprintf(state, "#ledger %lu %lu\n", lines, sum);
    d_closecheck(state);
    if (strcmp(how, "again") == 0) exit(D_EXIT_AGAIN);
}

static void enter(const char *text, unsigned long length) {
    lines++;
    sum = (sum * 31 + length) % 1000003;
    printf("%lu %lu %s\n", lines, sum, text);
    if (lines % 100 == 7) fprintf(stderr, "note at line %lu\n", lines);
}

int main(int argc, char **argv) {
    d_handler();
    unsigned long pause = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned long every = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    const char *how = argc > 3 ? argv[3] : "";
    const struct timespec moment = {0, 10000000};
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&text, &room, stdin)) > 0) {
        if (text[length - 1] == '\n') text[--length] = '\0';
        if (lines == 0 && sscanf(text, "#ledger %lu %lu", &lines, &sum) == 2) continue;
        enter(text, (unsigned long)length);
        if (d_time_to_ckpt() || (every > 0 && lines % every == 0)) checkpoint(how);
        if (pause > 0 && lines % pause == 0) nanosleep(&moment, NULL);
    }
    free(text);
    printf("end %lu %lu\n", lines, sum);
    return 0;
}
