/* A control program for tests, as cron starts one: cron_job SESSION GRAINS STEPS PROGRAM HANG resumes the session,
 * submits the grains that it does not have yet, waits for all, prints them in the order of their numbers and closes
 * the session. If the file HANG exists, it submits, writes HANG.pids and hangs, with a child that ignores what can
 * be ignored. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dcs.h"

static int report(const char *call, int error) {
    fprintf(stderr, "cron_job: %s: %s %s: %s\n", call, d_errorname(error), d_strerror(error), d_errortext());
    return 1;
}

static void hang(const char *file) {
    char name[4096], ready[4200];
    FILE *pids;
    pid_t child = fork();

    if (child == 0) {
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        setsid();
        for (;;) pause();
    }
    snprintf(name, sizeof name, "%s.pids", file);
    snprintf(ready, sizeof ready, "%s.new", name);
    pids = fopen(ready, "w");
    fprintf(pids, "%d %d\n", (int)getpid(), (int)child);
    fclose(pids);
    rename(ready, name);
    for (;;) pause();
}

int main(int argc, char **argv) {
    enum { most = 64 };
    char *outputs[most + 1] = {NULL}, *grain_argv[2] = {NULL, NULL}, input[64];
    int session, grains, error, i, grain, code, c;
    FILE *out;

    if (argc != 6 || (grains = atoi(argv[2])) > most) {
        fprintf(stderr, "usage: cron_job SESSION GRAINS STEPS PROGRAM HANG\n");
        return 2;
    }
    session = atoi(argv[1]);
    grain_argv[0] = argv[4];
    snprintf(input, sizeof input, "1 %s 1\n", argv[3]);
    if ((error = d_get_auth("cron_job")) != NO_ERROR) return report("d_get_auth", error);
    if ((error = d_resume_ses(session, TRUE)) != NO_ERROR) return report("d_resume_ses", error);
    for (i = 1; i <= grains; i++) {
        error = d_gexec(session, i, grain_argv, NULL, input, 0, 0, 0, 0);
        if (error != NO_ERROR && error != D_E_GRAIN_EXISTS) return report("d_gexec", error);
    }
    if (access(argv[5], F_OK) == 0) hang(argv[5]);
    while ((error = d_gwait_streams(D_BLOCK, session, &grain, NULL, NULL, NULL, &code, NULL, &out, NULL)) == NO_ERROR) {
        size_t size = 0;
        FILE *text = open_memstream(&outputs[grain], &size);
        while ((c = getc(out)) != EOF) putc(c, text);
        fprintf(text, "code %d\n", code);
        fclose(text);
        fclose(out);
    }
    if (error != D_E_NOTHING_LEFT) return report("d_gwait_streams", error);
    for (i = 1; i <= grains; i++) printf("grain %d\n%s", i, outputs[i] != NULL ? outputs[i] : "missing\n");
    error = d_close_ses(session);
    return error == NO_ERROR ? 0 : report("d_close_ses", error);
}
