/* Output increments: standard output and standard error are split at each checkpoint. The split is
 * made on the descriptors, so that buffers of other languages, and children that start later, follow. */
#include "grain_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grainlib.h"

_Noreturn void dcs_grain_fail_write(const char *what)
{
    int error = errno;
    dprintf(STDERR_FILENO, "grainlib: cannot write %s: %s\n", what, strerror(error));
    if (error == EFBIG) {
        signal(SIGXFSZ, SIG_DFL);
        raise(SIGXFSZ);
    }
    _exit(D_EXIT_WRITE_ERROR);
}

_Noreturn void dcs_grain_fail_misuse(const char *what)
{
    dprintf(STDERR_FILENO, "grainlib: %s\n", what);
    _exit(DCS_GRAIN_EXIT_MISUSE);
}

int dcs_grain_out_of_the_way(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    int error = errno;
    close(fd);
    errno = error;
    return copy;
}

int dcs_grain_open_directory(void)
{
    /* Opened each time, because a program may close descriptors that it does not know. */
    int fd = dcs_grain_out_of_the_way(open(dcs_grain_run.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) dcs_grain_fail_write(dcs_grain_run.directory);
    return fd;
}

void dcs_grain_flush(FILE *stream, const char *what)
{
    /* With only the error flag set, an earlier write failed and its errno is not known. */
    int lost_before = ferror(stream);
    errno = 0;
    if (fflush(stream) != 0 || lost_before) {
        if (errno == 0) errno = EIO;
        dcs_grain_fail_write(what);
    }
    /* Network file systems report a full disk when a descriptor is closed. A descriptor that is not open
     * had no data to lose, or fflush would have failed. */
    int copy = fcntl(fileno(stream), F_DUPFD_CLOEXEC, 10);
    if (copy >= 0 && close(copy) != 0) dcs_grain_fail_write(what);
}

static void move_descriptor(int directory, const char *stem, uint32_t sequence, int descriptor)
{
    char name[DCS_GRAIN_NAME_BYTES];
    snprintf(name, sizeof name, "%s.%lu", stem, (unsigned long)sequence);
    /* A sequence number belongs to one run: if the file exists, another process wrote it, and
     * it must be neither extended nor truncated. */
    int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) dcs_grain_fail_write(name);
    if (fd == descriptor) {
        /* The program had closed it; only clears the flag. */
        if (fcntl(fd, F_SETFD, 0) != 0) dcs_grain_fail_write(name);
        return;
    }
    if (dup2(fd, descriptor) < 0) /* dup2 leaves close-on-exec off: children inherit it */
        dcs_grain_fail_write(name);
    close(fd);
}

/* Increments of standard output that are complete, and their lengths at the checkpoint: the first one, which children
 * have that started with the program, and the last one. The program may have closed a descriptor, and opened another
 * file under its number. */
static struct complete {
    int fd, known;
    dev_t device;
    ino_t inode;
    off_t length;
} complete[2] = {{.fd = -1}, {.fd = -1}};

void dcs_grain_mark_complete(void)
{
    struct complete *it = complete[0].known ? &complete[1] : &complete[0];
    struct stat status;
    if (it->fd < 0) return;
    it->known = fstat(it->fd, &status) == 0 && S_ISREG(status.st_mode);
    it->device = status.st_dev;
    it->inode = status.st_ino;
    it->length = status.st_size;
    if (!it->known) close(it->fd);
}

void dcs_grain_check_complete(void)
{
    for (int i = 0; i < 2; i++) {
        struct complete *it = &complete[i];
        struct stat status;
        if (!it->known || dcs_grain_run.pid != getpid() || fstat(it->fd, &status) != 0) continue;
        it->known = status.st_dev == it->device && status.st_ino == it->inode;
        if (it->known && status.st_size > it->length)
            dcs_grain_fail_misuse(
                "a child process, or a copy of the descriptor, that is older than a checkpoint has "
                "written to standard output after it, which is lost: start children after it");
    }
}

void dcs_grain_next_increments(int directory, uint32_t sequence)
{
    struct complete *it = complete[0].known ? &complete[1] : &complete[0];
    if (it->known) close(it->fd);
    it->known = 0;
    it->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
    move_descriptor(directory, "out", sequence, STDOUT_FILENO);
    move_descriptor(directory, "err", sequence, STDERR_FILENO);
}
