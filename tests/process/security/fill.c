/* A control program for tests: fill SESSION FIRST COUNT BYTES PROGRAM submits grains FIRST .. FIRST+COUNT-1
 * with BYTES of input each, until one is refused. Prints "submitted N" and, if refused, the error's name.
 * fill SESSION wait N: waits for N results and prints each grain's number, output length and code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dcs.h"

static int report(const char *call, int error) {
    printf("%s %s\n", call, d_errorname(error));
    fprintf(stderr, "fill: %s: %s: %s\n", call, d_strerror(error), d_errortext());
    return 1;
}

static int submit(int session, int first, int count, size_t bytes, char *program) {
    char *argv[2] = {program, NULL};
    char *input = malloc(bytes + 1);
    int error = 0, i;

    memset(input, 'x', bytes);
    input[bytes] = '\0';
    for (i = 0; i < count; i++) {
        memcpy(input, "0000000000", bytes < 10 ? bytes : 10);
        error = d_gexec(session, first + i, argv, NULL, input, 0, 0, 0, 0);
        if (error != NO_ERROR) break;
    }
    printf("submitted %d\n", i);
    free(input);
    return error == NO_ERROR ? 0 : report("d_gexec", error);
}

static int wait_for(int session, int count) {
    int i, error, grain, signal_number, code;
    size_t length;

    for (i = 0; i < count; i++) {
        error = d_gwait(D_BLOCK, session, &grain, NULL, NULL, &signal_number, &code, NULL, &length, NULL, NULL, NULL);
        if (error != NO_ERROR) return report("d_gwait", error);
        printf("grain %d length %zu signal %d code %d\n", grain, length, signal_number, code);
    }
    return 0;
}

int main(int argc, char **argv) {
    int session, error;

    if (argc != 4 && argc != 6) {
        fprintf(stderr, "usage: fill SESSION FIRST COUNT BYTES PROGRAM | fill SESSION wait N\n");
        return 2;
    }
    session = atoi(argv[1]);
    if ((error = d_get_auth("fill")) != NO_ERROR) return report("d_get_auth", error);
    if ((error = d_resume_ses(session, TRUE)) != NO_ERROR) return report("d_resume_ses", error);
    if (argc == 4) return wait_for(session, atoi(argv[3]));
    return submit(session, atoi(argv[2]), atoi(argv[3]), (size_t)atol(argv[4]), argv[5]);
}
