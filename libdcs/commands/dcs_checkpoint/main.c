/* dcs_checkpoint: writes one checkpoint for the process that calls it, a grain in a language without a
 * grain library of its own. The grain library does the work; what differs is whose output is cut (the
 * caller moves its own descriptors afterwards) and whose CPU time is reported. */
#include "grain/grain_run.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grainlib.h"

static const char usage[] =
    "Writes a checkpoint for the grain that calls it; the state text comes on standard input.\n"
    "\n"
    "Usage: dcs_checkpoint [-m MESSAGE] -o BYTES | -i FD  <STATE\n"
    "       dcs_checkpoint --is-grain\n"
    "\n"
    "  -m MESSAGE  message to show until the next checkpoint\n"
    "  -o BYTES    how much of its standard input the grain has consumed in this run\n"
    "  -i FD       a descriptor that shares the position of the grain's standard input, which says that\n"
    "  --is-grain  only say by the exit status whether the caller is a grain that has a grain server\n"
    "\n"
    "The first process of the grain calls it, with DCS_GRAIN_DIR and DCS_GRAIN_SEQUENCE (S) as the server\n"
    "set them, S one higher after each checkpoint. Afterwards checkpoint.S is complete and out.S+1 and\n"
    "err.S+1 are there: the caller opens them for appending as its descriptors 1 and 2, before it writes\n"
    "anything more, and counts S on. `exec >>out.S+1 2>>err.S+1` does that in a shell.\n"
    "\n"
    "Exit code: 0 done; 1 --is-grain: no; 70 wrong use; 74 it cannot be written here, which the grain should\n"
    "exit with as well.\n";

static long long number_of(const char *word)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(word, &end, 10);
    return errno != 0 || end == word || *end != '\0' || value < 0 ? -1 : value;
}

/* CPU time of the caller and its waited-for children, where the system tells it; else 0. */
static void tell_usage(pid_t pid)
{
    char name[64], text[1024];
    unsigned long user = 0, system = 0;
    long children_user = 0, children_system = 0;
    dcs_grain_run.usage_told = 1;
    snprintf(name, sizeof name, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(name, "re");
    if (file == NULL) return;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *fields = strrchr(text, ')');
    long ticks = sysconf(_SC_CLK_TCK);
    if (fields == NULL || ticks <= 0 ||
        sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &user, &system, &children_user,
               &children_system) != 4)
        return;
    dcs_grain_run.user_us = ((long long)user + children_user) * 1000000 / ticks;
    dcs_grain_run.system_us = ((long long)system + children_system) * 1000000 / ticks;
}

static void copy_state(FILE *to)
{
    char piece[65536];
    ssize_t got;
    while ((got = read(STDIN_FILENO, piece, sizeof piece)) != 0) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) dcs_grain_fail_misuse("the state text cannot be read from standard input");
        fwrite(piece, 1, (size_t)got, to); /* d_closecheck looks at its errors */
    }
}

static int called_by_a_grain(void)
{
    dcs_grain_run.known = 1;
    dcs_grain_read_environment();
    return dcs_grain_run.served && getsid(0) == getppid();
}

/* In a loop of the shell with its own input, descriptor 0 is another file, whose position says nothing. */
static long long position_in_the_input(int fd)
{
    char path[PATH_MAX];
    struct stat its, own;
    const char *room = getenv("DCS_GRAIN_DIR");
    off_t position = lseek(fd, 0, SEEK_CUR);
    if (room == NULL || snprintf(path, sizeof path, "%s/input", room) >= (int)sizeof path) return position;
    if (position >= 0 && (fstat(fd, &its) != 0 || stat(path, &own) != 0)) return position;
    if (position < 0 || its.st_dev != own.st_dev || its.st_ino != own.st_ino)
        dcs_grain_fail_misuse(
            "dcs_checkpoint: the descriptor of -i is not the grain's standard input, but another file or a pipe; "
            "within `while read ...; done <FILE` keep the input on a descriptor of its own (exec 9<&0)");
    return position;
}

int main(int argc, char **argv)
{
    const char *message = "";
    long long consumed = -1;
    int option;
    if (argc == 2 && strcmp(argv[1], "--is-grain") == 0) return called_by_a_grain() ? 0 : 1;
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return fputs(usage, stdout) < 0 || fflush(stdout) != 0 ? D_EXIT_WRITE_ERROR : 0;
    while ((option = getopt(argc, argv, "m:o:i:")) != -1) {
        if (option == 'm') message = optarg;
        else if (option == 'o') consumed = number_of(optarg);
        else if (option == 'i' && number_of(optarg) >= 0) consumed = position_in_the_input((int)number_of(optarg));
        else dcs_grain_fail_misuse("`dcs_checkpoint --help` says how it is used");
    }
    if (optind != argc || consumed < 0)
        dcs_grain_fail_misuse("dcs_checkpoint: -o BYTES or -i FD must say how much input was consumed");
    if (!called_by_a_grain())
        dcs_grain_fail_misuse(
            "dcs_checkpoint: only the first process of a grain may call it itself, with "
            "DCS_GRAIN_DIR and DCS_GRAIN_SEQUENCE of its grain server");
    tell_usage(getppid());
    FILE *file = d_opencheck(message);
    copy_state(file);
    d_input_offset(consumed);
    d_closecheck(file);
    return 0;
}
