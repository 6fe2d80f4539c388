/* Grains that no host wants. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void bomb(void) {
    for (;;) (void)!fork();
}

static void hog(void) {
    const size_t step = 1 << 20;
    for (;;) {
        char *p = malloc(step);
        if (p != NULL) memset(p, 'x', step);
    }
}

/* One line without an end. */
static void flood(long long bytes) {
    static char block[1 << 20];
    memset(block, 'x', sizeof block);
    while (bytes > 0) {
        const ssize_t n = write(1, block, bytes < (long long)sizeof block ? (size_t)bytes : sizeof block);
        if (n <= 0) _exit(9);
        bytes -= n;
    }
}

static void fill(const char *path) {
    static char block[1 << 16];
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    while (write(fd, block, sizeof block) > 0) {}
    perror("fill");
    exit(8);
}

static void deaf(void) {
    for (int s = 1; s < 65; ++s) signal(s, SIG_IGN);
    for (;;) sleep(1000);
}

/* A process that belongs to no peer any more: other session, other parent, no environment, no descriptors. */
static void hide(const char *self) {
    static char *const words[] = {"hidden", "rest", NULL};
    static char *const nothing[] = {NULL};
    if (fork() != 0) {
        wait(NULL);
        return;
    }
    setsid();
    if (fork() != 0) _exit(0);
    if (chdir("/") != 0) _exit(1);
    for (int fd = 0; fd < 4096; ++fd) close(fd);
    for (int s = 1; s < 65; ++s) signal(s, SIG_IGN);
    execve(self, words, nothing);
    _exit(1);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "bomb") == 0) bomb();
    if (strcmp(what, "hog") == 0) hog();
    if (strcmp(what, "flood") == 0) flood(1LL << 30);
    if (strcmp(what, "fill") == 0) fill(argv[2]);
    if (strcmp(what, "deaf") == 0) deaf();
    if (strcmp(what, "rest") == 0)
        for (;;) pause();
    if (strcmp(what, "hide") == 0) hide(argv[2]);
    if (strcmp(what, "mute") == 0) {
        for (int fd = 0; fd < 1024; ++fd) close(fd);
        return 3;
    }
    return 0;
}
