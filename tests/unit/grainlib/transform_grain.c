/* A grain for the tests: numbers the lines of its input and turns its letters by 13 places. It can
 * stop between any two bytes. Usage: transform_grain how [slow|every N]
 *   fgetc, getline, read: how standard input is read; "read" goes past stdio
 *   close: fgetc, and stdin is closed at the end of the input before a last checkpoint
 *   slow: rests now and then, so that there is time to disturb it
 *   every N: takes a checkpoint after each N bytes without being asked */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grainlib.h"

static unsigned long line = 0, bytes = 0, sum = 0;
static int inside_line = 0;

static char buffer[1000]; /* of "read": no divisor of stdio's block */
static size_t buffer_next = 0, buffer_end = 0;
static long long consumed = 0;
static int past_stdio = 0, slow = 0;

static int next_byte(void) {
    if (!past_stdio) return fgetc(stdin);
    if (buffer_next == buffer_end) {
        ssize_t got = read(0, buffer, sizeof buffer);
        if (got <= 0) return EOF;
        buffer_next = 0;
        buffer_end = (size_t)got;
    }
    consumed++;
    return (unsigned char)buffer[buffer_next++];
}

static void read_state(void) {
    /* Original input never begins with '#'. */
    int c = next_byte();
    if (c != '#') {
        if (c == EOF) return;
        if (past_stdio) {
            buffer_next--;
            consumed--;
        } else {
            ungetc(c, stdin);
        }
        return;
    }
    char text[200];
    size_t length = 0;
    while ((c = next_byte()) != EOF && c != '\n' && length < sizeof text - 1) text[length++] = (char)c;
    text[length] = '\0';
    if (sscanf(text, "state %lu %lu %lu %d", &line, &bytes, &sum, &inside_line) != 4) exit(3);
}

static void checkpoint(void) {
    char message[100];
    snprintf(message, sizeof message, "line %lu\nbyte %lu", line, bytes);
    FILE *f = d_opencheck(message);
    fprintf(f, "#state %lu %lu %lu %d\n", line, bytes, sum, inside_line);
    if (past_stdio) d_input_offset(consumed);
    d_closecheck(f);
}

static void line_begins(void) {
    line++;
    printf("%lu:", line);
    if (line % 5000 == 500) {
        /* A child writes where the grain writes. */
        fflush(stdout);
        if (system("echo child") != 0) exit(4);
    }
    if (line % 100 == 7) fprintf(stderr, "note at line %lu\n", line);
}

static void take(int c) {
    if (!inside_line) line_begins();
    inside_line = c != '\n';
    bytes++;
    if (slow && bytes % 10007 == 0) usleep(150);
    sum = (sum * 31 + (unsigned long)c) % 1000003;
    if (c >= 'a' && c <= 'z') c = 'a' + (c - 'a' + 13) % 26;
    putchar(c);
}

static void run_by_line(void) {
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&text, &room, stdin)) > 0) {
        for (ssize_t i = 0; i < length; i++) take((unsigned char)text[i]);
        if (d_time_to_ckpt()) checkpoint();
    }
    free(text);
}

static void run_by_byte(unsigned long every) {
    int c;
    while ((c = next_byte()) != EOF) {
        take(c);
        if (d_time_to_ckpt() || (every > 0 && bytes % every == 0)) checkpoint();
    }
}

int main(int argc, char **argv) {
    d_handler();
    const char *how = argc > 1 ? argv[1] : "fgetc";
    past_stdio = strcmp(how, "read") == 0;
    slow = argc > 2 && strcmp(argv[2], "slow") == 0;
    read_state();
    if (strcmp(how, "getline") == 0) run_by_line();
    else run_by_byte(argc > 3 ? strtoul(argv[3], NULL, 10) : 0);
    if (strcmp(how, "close") == 0) {
        fclose(stdin);
        checkpoint();
    }
    printf("\nlines %lu bytes %lu sum %lu\n", line, bytes, sum);
    return 0;
}
