/* One grain by the paper's d_gexec: `gexec IDENT SESSION CLASSES PROGRAM [ARG...]`, its input from standard input;
 * its output, its errors and its exit code (128+N after a signal) become this program's own. 125: a call failed, and
 * a line on standard error says which, with what and why. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dcs.h"

extern char **environ;

static int failed(const char *call, int error) {
    fprintf(stderr, "gexec: %s: %d: %s\n", call, error, d_strerror(error));
    return 125;
}

static char *whole_input(void) {
    size_t length = 0, room = 1 << 16, got;
    char *text = malloc(room);
    while (text != NULL && (got = fread(text + length, 1, room - length - 1, stdin)) > 0) {
        length += got;
        if (room - length < 4096) text = realloc(text, room *= 2);
    }
    if (text == NULL) {
        perror("gexec");
        exit(125);
    }
    text[length] = '\0';
    return text;
}

static void copy(FILE *from, FILE *to) {
    char piece[65536];
    size_t got;
    while (from != NULL && (got = fread(piece, 1, sizeof piece, from)) > 0) fwrite(piece, 1, got, to);
    if (from != NULL) fclose(from);
}

int main(int argc, char **argv) {
    int error, number, completed, sent, termsig, code, session;
    FILE *out = NULL, *err = NULL;
    if (argc < 5) return 125;
    session = atoi(argv[2]);
    if ((error = d_get_auth(argv[1])) != NO_ERROR) return failed("d_get_auth", error);
    if ((error = d_resume_ses(session, TRUE)) != NO_ERROR) return failed("d_resume_ses", error);
    error = d_gexec(session, 1, argv + 4, environ, whole_input(), (unsigned)strtoul(argv[3], NULL, 0), 0, 0, 0);
    if (error != NO_ERROR) return failed("d_gexec", error);
    error = d_gwait_streams(D_BLOCK, session, &number, &completed, &sent, &termsig, &code, NULL, &out, &err);
    if (error != NO_ERROR) return failed("d_gwait", error);
    copy(out, stdout);
    copy(err, stderr);
    if ((error = d_close_ses(session)) != NO_ERROR) return failed("d_close_ses", error);
    return termsig != 0 ? 128 + termsig : code;
}
