/* A control program for tests: reopen SESSION IDENT reopens a terminated session of IDENT with its results from
 * the first one on, waits for all of them, closes it, and prints "grain OUTPUT" of each, in any order of ending. */
#include <stdio.h>
#include <stdlib.h>

#include "dcs.h"

static int report(const char *call, int error) {
    fprintf(stderr, "reopen: %s: %s %s: %s\n", call, d_errorname(error), d_strerror(error), d_errortext());
    return 1;
}

int main(int argc, char **argv) {
    int session, error, grain, code, c;
    FILE *out;

    if (argc != 3) {
        fprintf(stderr, "usage: reopen SESSION IDENT\n");
        return 2;
    }
    session = atoi(argv[1]);
    if ((error = d_get_auth(argv[2])) != NO_ERROR) return report("d_get_auth", error);
    if ((error = d_reopen_ses(session, TRUE)) != NO_ERROR) return report("d_reopen_ses", error);
    while ((error = d_gwait_streams(D_BLOCK, session, &grain, NULL, NULL, NULL, &code, NULL, &out, NULL)) == NO_ERROR) {
        printf("grain %d code %d\n", grain, code);
        while ((c = getc(out)) != EOF) putchar(c);
        fclose(out);
    }
    if (error != D_E_NOTHING_LEFT) return report("d_gwait_streams", error);
    error = d_close_ses(session);
    return error == NO_ERROR ? 0 : report("d_close_ses", error);
}
