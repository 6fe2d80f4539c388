/* Signals of the grain server, and the detection of a grain server. */
#include "grain_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grainlib.h"

struct dcs_grain_run dcs_grain_run = {.input_copy = -1};

static volatile sig_atomic_t checkpoint_flag = 0;
static volatile sig_atomic_t thrash_flag = 0;

static void catch_checkpoint(int number)
{
    (void)number;
    checkpoint_flag = 1;
}

static void catch_thrash(int number)
{
    (void)number;
    thrash_flag = 1;
}

static void install(int number, void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART; /* the program's reads and writes must not fail because of the library */
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
    /* Unblocks the signal, in case the program was started with it blocked. */
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}

/* libc flushes standard output at exit but does not report a failure: a grain on a full disk
 * would count as finished with half of its output. */
static void check_output_at_exit(void)
{
    dcs_grain_flush(stdout, "standard output");
    dcs_grain_flush(stderr, "standard error");
    dcs_grain_check_complete();
}

static void remember_input(void)
{
    struct stat status;
    if (fstat(STDIN_FILENO, &status) != 0) return;
    dcs_grain_run.input_device = status.st_dev;
    dcs_grain_run.input_inode = status.st_ino;
    dcs_grain_run.input_copy = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10);
}

void dcs_grain_read_environment(void)
{
    struct dcs_grain_run *run = &dcs_grain_run;
    const char *directory = getenv("DCS_GRAIN_DIR");
    const char *sequence = getenv("DCS_GRAIN_SEQUENCE");
    if (directory == NULL || sequence == NULL) return;
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(sequence, &end, 10);
    if (errno != 0 || end == sequence || *end != '\0' || number >= UINT32_MAX)
        dcs_grain_fail_misuse("DCS_GRAIN_SEQUENCE is not a sequence number");
    if (directory[0] != '/' || strlen(directory) >= sizeof run->directory)
        dcs_grain_fail_misuse("DCS_GRAIN_DIR is not an absolute path");
    strcpy(run->directory, directory);
    run->sequence = (uint32_t)number;
    run->pid = getpid();
    run->served = 1;
}

void dcs_grain_begin(void)
{
    if (dcs_grain_run.known) return;
    dcs_grain_run.known = 1;
    /* Only the process that the server started may redirect the grain's output. A helper program of
     * a grain inherits the environment, but its standard streams may be anything. */
    if (getsid(0) != getpid()) return;
    dcs_grain_read_environment();
    if (dcs_grain_run.served) remember_input();
}

void d_handler(void)
{
    static int installed = 0;
    if (installed) return;
    installed = 1;
    atexit(check_output_at_exit);
    dcs_grain_begin();
    if (!dcs_grain_run.served) return;
    install(SIGUSR1, catch_checkpoint);
    install(SIGUSR2, catch_thrash);
    /* Last: after it the server may send signals. */
    int directory = dcs_grain_open_directory();
    int fd = openat(directory, "announce", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || close(fd) != 0) dcs_grain_fail_write("announce");
    close(directory);
}

void d_ghandler(void)
{
    d_handler();
}

int d_time_to_ckpt(void)
{
    if (!checkpoint_flag) return 0;
    checkpoint_flag = 0;
    return 1;
}

int d_thrashing(void)
{
    if (!thrash_flag) return 0;
    thrash_flag = 0;
    return 1;
}
