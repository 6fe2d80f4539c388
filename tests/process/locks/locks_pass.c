/* A program as in "Adaptive Locks For Frequently Scheduled Tasks": a pass over atoms, each between GetLock and
 * ReleaseCurrentLock.
 *     locks_pass LOG minutes|seconds|start IFELAPSED EXPIREAFTER ATOM=ACTION...
 * minutes: the paper's calls, all atoms judged by the start of the pass; seconds: the calls with a struct;
 * start: the same, and elapsed times count from the start of the last run. Actions: run; self (execute this very
 * program again and wait for it); hang; deaf (hang, and ignore INT and TERM); wait:FILE (until the file
 * exists); make:FILE; circle:FILE:OTHER (wait for the one, then make the other).
 * Each step is a line "PID ATOM WORD" of LOG: taken, took-over or the reason of the refusal, then done. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dcs_lock.h"

static int log_fd;

static void say(const char *atom, const char *word) {
    char line[256];
    int n = snprintf(line, sizeof line, "%d %s %s\n", (int)getpid(), atom, word);
    if (write(log_fd, line, (size_t)n) != n) exit(9);
}

static void await(const char *file) {
    struct timespec pause = {0, 5000000};
    while (access(file, F_OK) != 0) nanosleep(&pause, NULL);
}

static void make(const char *file) {
    int fd = open(file, O_WRONLY | O_CREAT, 0600);
    if (fd < 0) exit(9);
    close(fd);
}

static void run_self(char **argv) {
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        execv("/proc/self/exe", argv);
        _exit(9);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0) exit(9);
}

static void act(char *action, char **argv) {
    char *file = strchr(action, ':'), *other = NULL;
    if (file != NULL) *file++ = '\0';
    if (file != NULL && (other = strchr(file, ':')) != NULL) *other++ = '\0';
    if (strcmp(action, "self") == 0) run_self(argv);
    if (strcmp(action, "deaf") == 0) {
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
    }
    if (strcmp(action, "hang") == 0 || strcmp(action, "deaf") == 0)
        for (;;) pause();
    if (strcmp(action, "wait") == 0 || strcmp(action, "circle") == 0) await(file);
    if (strcmp(action, "make") == 0) make(file);
    if (strcmp(action, "circle") == 0) make(other);
}

int main(int argc, char **argv) {
    time_t start = time(NULL);
    int i, minutes;
    if (argc < 6) return 2;
    log_fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd < 0) return 9;
    minutes = strcmp(argv[2], "minutes") == 0;
    for (i = 5; i < argc; ++i) {
        char step[512], *action;
        d_lock *lock = NULL;
        snprintf(step, sizeof step, "%s", argv[i]);
        action = strchr(step, '=');
        if (action == NULL) return 2;
        *action++ = '\0';
        if (minutes) {
            if (!GetLock("pass", step, atol(argv[3]), atol(argv[4]), NULL, start)) {
                say(step, "denied");
                continue;
            }
            say(step, "taken");
        } else {
            struct d_lock_request request;
            struct d_lock_answer answer = {.struct_size = sizeof(struct d_lock_answer)};
            d_lock_init(&request);
            request.operator_ = "pass";
            request.operand = step;
            request.if_elapsed = (int64_t)(atof(argv[3]) * 1e9);
            request.expire_after = (int64_t)(atof(argv[4]) * 1e9);
            request.since_start = strcmp(argv[2], "start") == 0;
            request.max_kills = 100;
            request.grace[0] = request.grace[1] = D_LOCK_SECOND / 5;
            if (d_lock_get(&request, &answer, &lock) != D_LOCK_GRANTED) {
                say(step, d_lock_reason_word(answer.reason));
                continue;
            }
            say(step, answer.took_over ? "took-over" : "taken");
        }
        act(action, argv);
        say(step, "done");
        if ((minutes ? ReleaseCurrentLock() : d_lock_release(lock, 1)) != D_LOCK_GRANTED) return 9;
    }
    return 0;
}
