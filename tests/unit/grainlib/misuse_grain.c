/* Odd grains for the tests; the first argument says which. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grainlib.h"

static void checkpoint(const char *message, const char *state) {
    FILE *f = d_opencheck(message);
    fputs(state, f);
    d_closecheck(f);
}

static void wait_for(int (*flag)(void)) {
    while (!flag()) usleep(1000);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "no-handler") != 0) d_handler();
    d_ghandler(); /* twice does no harm */
    if (strcmp(what, "example") == 0) {
        /* The example of docs/GRAIN_PROTOCOL.md, as far as it does not depend on time. */
        for (int i = 0; i < 1234; i++) getchar();
        checkpoint("half way through.", "hello");
    } else if (strcmp(what, "three") == 0) {
        for (int i = 1; i <= 3; i++) {
            printf("part %d\n", i);
            checkpoint(NULL, "");
        }
        puts("part 4");
    } else if (strcmp(what, "long-message") == 0) {
        static char message[100001];
        memset(message, 'm', sizeof message - 1);
        checkpoint(message, "state\n");
    } else if (strcmp(what, "twice-open") == 0) {
        d_opencheck("one");
        d_opencheck("two");
    } else if (strcmp(what, "wrong-stream") == 0) {
        d_opencheck("one");
        d_closecheck(stdout);
    } else if (strcmp(what, "child") == 0) {
        int status = 0;
        if (fork() == 0) checkpoint("not mine", "state\n");
        return wait(&status) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 4;
    } else if (strncmp(what, "older", 5) == 0) {
        FILE *older = fdopen(dup(1), "w"); /* as a child has it that was started before */
        fputs("before\n", older), fflush(older);
        checkpoint("one", "state\n");
        if (strcmp(what, "older-twice") == 0) checkpoint("two", "state\n");
        if (strcmp(what, "older-closed") == 0) {
            for (int fd = 3; fd < 100; fd++) close(fd);
            for (int i = 0; i < 20; i++) dup(fileno(tmpfile()));
            puts("others");
        } else if (strcmp(what, "older-silent") != 0) {
            fputs("lost\n", older), fflush(older);
        }
        if (strcmp(what, "older-next") == 0) checkpoint("next", "state\n"), puts("not reached");
    } else if (strcmp(what, "closed-streams") == 0) {
        close(1);
        close(2);
        checkpoint("nowhere to write", "state\n");
        puts("now there is");
    } else if (strcmp(what, "no-stdin") == 0) {
        if (freopen("/dev/null", "r", stdin) == NULL) return 5;
        for (int fd = 3; fd < 100; fd++) close(fd);
        checkpoint("lost", "state\n");
    } else if (strcmp(what, "write") == 0) {
        fputs("some output\n", stdout);
        checkpoint("written", "state\n");
    } else if (strcmp(what, "write-and-end") == 0) {
        fputs("some output\n", stdout);
    } else if (strcmp(what, "big") == 0) {
        signal(SIGXFSZ, SIG_IGN);
        for (int i = 0; i < 10000; i++) fputs("0123456789", stdout);
        checkpoint("big", "state\n");
    } else if (strcmp(what, "signals") == 0) {
        wait_for(d_time_to_ckpt);
        printf("checkpoint %d\n", d_time_to_ckpt());
        wait_for(d_thrashing);
        printf("thrash %d\n", d_thrashing());
    } else if (strcmp(what, "helper") == 0) {
        /* A grain that runs another checkpointing program in a pipe. */
        char command[4200];
        snprintf(command, sizeof command, "'%s' three | tr p P", argv[0]);
        return system(command) == 0 ? 0 : 1;
    }
    return 0;
}
