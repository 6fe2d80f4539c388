/* A grain that tries what a grain should not. One act per argument, one line of answer per act: the act, then "ok" or
 * the name of the error.
 *   call:NUMBER        that system call, with arguments that cannot do harm (all bits set)
 *   call32:NUMBER      the same by the 32-bit door ("none" where the kernel has no such door)
 *   callx32:NUMBER     the same by the x32 table
 *   unshare:FLAGS clone:FLAGS clone3:FLAGS       new namespaces
 *   trace:PID readmem:PID kill:PID see:PID  another process
 *   trace_me           a child of its own asks to be traced by it
 *   own_child          signal a child of its own
 *   socket:FAMILY socket32:FAMILY abstract:NAME  sockets; a connection to an abstract one
 *   netlink:PROTOCOL   a socket to that part of the kernel
 *   socketcall32:CALL  the older way to sockets, whose arguments are in memory
 *   type_ahead         input put into a terminal (TIOCSTI)
 *   read:PATH write:PATH make:PATH remove:PATH mode:PATH rename:PATH:PATH
 *   segment:KEY        a System V segment of another user
 *   list:PATH          names there, instead of "ok"
 *   id                 "uid gid groups", instead of "ok"
 *   sleep              until it is ended */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int said; /* the act has said something itself */

static long as_call(long number) { return syscall(number, -1L, -1L, -1L, -1L, -1L, -1L); }

/* In a child: without the door the kernel ends it. The answer is 1 + errno, or 0 for success. */
static long by_door_32(long number, long first) {
#if defined(__x86_64__)
    int status;
    const pid_t child = fork();

    if (child == 0) {
        long result;
        signal(SIGSEGV, SIG_DFL);
        __asm__ volatile("int $0x80"
                         : "=a"(result)
                         : "a"(number), "b"(first), "c"(-1L), "d"(-1L), "S"(-1L), "D"(-1L)
                         : "memory", "r8", "r9", "r10", "r11");
        _exit((int)result < 0 ? -(int)result : 0);
    }
    if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)) {
        errno = WEXITSTATUS(status);
        return errno == 0 ? 0 : -1;
    }
#endif
    (void)number, (void)first;
    printf("none\n");
    said = 1;
    return 0;
}

static long new_process(int by_clone3, unsigned long flags) {
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    } all = {0};
    long child;

    all.flags = flags;
    all.exit_signal = SIGCHLD;
    child = by_clone3 ? syscall(SYS_clone3, &all, sizeof all) : syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    if (child > 0) waitpid((pid_t)child, NULL, 0);
    return child > 0 ? 0 : -1;
}

static long trace(pid_t pid) {
    if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) != 0) return -1;
    waitpid(pid, NULL, __WALL);
    return ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

static long readmem(pid_t pid) {
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)environ, 1};
    const long n = process_vm_readv(pid, &here, 1, &there, 1, 0);

    return n >= 0 || errno == EFAULT ? 0 : -1; /* another layout: it would have been let */
}

static long own_child(void) {
    const pid_t child = fork();
    long result;

    if (child == 0)
        for (;;) pause();
    result = kill(child, SIGCONT) == 0 && kill(child, 0) == 0 ? 0 : -1;
    kill(child, SIGKILL);
    return waitpid(child, NULL, 0) == child ? result : -1;
}

/* As a debugger's child does. */
static long trace_me(void) {
    const pid_t child = fork();
    int status = 0;

    if (child == 0) _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? 0 : errno);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    errno = WEXITSTATUS(status);
    return errno == 0 ? 0 : -1;
}

static long connect_abstract(const char *name) {
    struct sockaddr_un address = {AF_UNIX, ""};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    strncpy(address.sun_path + 1, name, sizeof address.sun_path - 2);
    return fd < 0 ? -1
                  : connect(fd, (struct sockaddr *)&address,
                            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)));
}

static long see(const char *pid) {
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%s", pid);
    return stat(path, &st);
}

static long type_ahead(void) {
    const char c = 'x';
    const int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY);

    return fd < 0 ? -1 : ioctl(fd, TIOCSTI, &c);
}

static long list(const char *path) {
    DIR *dir = opendir(path);
    struct dirent *entry;

    if (dir == NULL) return -1;
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.') printf("%s ", entry->d_name);
    closedir(dir);
    printf("\n");
    said = 1;
    return 0;
}

static long id(void) {
    gid_t groups[256];
    const int n = getgroups(256, groups);
    int i;

    printf("%d %d", (int)getuid(), (int)getgid());
    for (i = 0; i < n; i++) printf(" %d", (int)groups[i]);
    printf("\n");
    said = 1;
    return 0;
}

static long open_only(const char *path, int flags) {
    const int fd = open(path, flags | O_NOCTTY | O_NONBLOCK, 0600);

    if (fd < 0) return -1;
    return (flags & O_WRONLY) ? write(fd, "x", 1) - 1 : 0;
}

static long rename_words(char *words) {
    char *to = strchr(words, ':');

    *to = '\0';
    return rename(words, to + 1);
}

static long do_act(const char *act, char *word) {
    const long number = strtol(word, NULL, 0);
    if (!strcmp(act, "call")) return as_call(number);
    if (!strcmp(act, "call32")) return by_door_32(number, -1);
    if (!strcmp(act, "callx32")) return as_call(number | 0x40000000);
    if (!strcmp(act, "unshare")) return unshare((int)number);
    if (!strcmp(act, "clone")) return new_process(0, (unsigned long)number);
    if (!strcmp(act, "clone3")) return new_process(1, (unsigned long)number);
    if (!strcmp(act, "trace")) return trace((pid_t)number);
    if (!strcmp(act, "trace_me")) return trace_me();
    if (!strcmp(act, "readmem")) return readmem((pid_t)number);
    if (!strcmp(act, "kill")) return kill((pid_t)number, SIGCONT);
    if (!strcmp(act, "see")) return see(word);
    if (!strcmp(act, "own_child")) return own_child();
    if (!strcmp(act, "socket")) return socket((int)number, number == AF_NETLINK ? SOCK_RAW : SOCK_STREAM, 0);
    if (!strcmp(act, "socket32")) return by_door_32(359, number);
    if (!strcmp(act, "netlink")) return socket(AF_NETLINK, SOCK_RAW, (int)number);
    if (!strcmp(act, "socketcall32")) return by_door_32(102, number);
    if (!strcmp(act, "abstract")) return connect_abstract(word);
    if (!strcmp(act, "type_ahead")) return type_ahead();
    if (!strcmp(act, "read")) return open_only(word, O_RDONLY);
    if (!strcmp(act, "write")) return open_only(word, O_WRONLY);
    if (!strcmp(act, "make")) return open_only(word, O_WRONLY | O_CREAT | O_EXCL);
    if (!strcmp(act, "remove")) return unlink(word);
    if (!strcmp(act, "mode")) return chmod(word, 0700);
    if (!strcmp(act, "rename")) return rename_words(word);
    if (!strcmp(act, "segment")) return shmget((key_t)number, 0, 0);
    if (!strcmp(act, "list")) return list(word);
    if (!strcmp(act, "id")) return id();
    if (!strcmp(act, "sleep"))
        for (;;) pause();
    fprintf(stderr, "confined: no act %s\n", act);
    exit(2);
}

int main(int argc, char **argv) {
    int i;

    for (i = 1; i < argc; i++) {
        char *colon = strchr(argv[i], ':');
        char none[] = "";
        long result;

        printf("%s ", argv[i]);
        if (colon != NULL) *colon = '\0';
        fflush(stdout);
        errno = 0;
        said = 0;
        result = do_act(argv[i], colon != NULL ? colon + 1 : none);
        if (!said) printf("%s\n", result >= 0 ? "ok" : strerrorname_np(errno));
        fflush(stdout);
    }
    return 0;
}
