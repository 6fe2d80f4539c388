/* Writing a checkpoint; docs/GRAIN_PROTOCOL.md describes the steps and the format. No fsync
 * anywhere: what the grain writes becomes durable when the scheduler has received it. */
#include "grain_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grainlib.h"

/* CRC-32 of IEEE 802.3 (reflected, 0xEDB88320), as in zlib; begin with 0 and continue with the previous result. */
static uint32_t crc32_of(uint32_t crc, const void *bytes, size_t length)
{
    static uint32_t table[256];
    if (table[1] == 0) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t value = i;
            for (int bit = 0; bit < 8; bit++) value = (value & 1u) ? (value >> 1) ^ 0xEDB88320u : value >> 1;
            table[i] = value;
        }
    }
    const unsigned char *p = bytes;
    crc = ~crc;
    while (length-- > 0) crc = table[(crc ^ *p++) & 0xFFu] ^ (crc >> 8);
    return ~crc;
}

static int is_the_input(int fd)
{
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == dcs_grain_run.input_device &&
           status.st_ino == dcs_grain_run.input_inode;
}

/* How much of standard input the program has consumed, without stdio's read-ahead; -1: not known. */
static long long stdin_position(void)
{
    /* ftello subtracts unread bytes in the buffer and those pushed back by ungetc. If
     * the program uses read(2), the buffer is empty and the result is correct too. */
    if (is_the_input(STDIN_FILENO)) {
        off_t position = ftello(stdin);
        if (position >= 0) return (long long)position;
    }
    /* The program closed or replaced stdin. fclose reset the offset of the open file to what
     * was consumed (POSIX), and the library's copy shares that offset. */
    if (is_the_input(dcs_grain_run.input_copy)) {
        off_t position = lseek(dcs_grain_run.input_copy, 0, SEEK_CUR);
        if (position >= 0) return (long long)position;
    }
    return -1;
}

static struct {
    FILE *stream; /* NULL: no checkpoint is being written */
    int directory;
    off_t state_start;     /* where the state text begins */
    off_t offset_field;    /* where the digits of the input offset begin */
    int offset_digits;     /* and their number */
    long long offset;      /* consumed standard input according to stdio; -1: not known */
    long long offset_told; /* from d_input_offset; -1: not called */
    char name[DCS_GRAIN_NAME_BYTES];
    char temporary[DCS_GRAIN_NAME_BYTES];
} checkpoint;

static void remove_old_checkpoints(int directory, uint32_t sequence)
{
    /* The one before the last may still be in transfer to the scheduler; older ones are not needed. */
    for (uint32_t old = sequence; old >= 2; old--) {
        char name[DCS_GRAIN_NAME_BYTES];
        snprintf(name, sizeof name, "checkpoint.%lu", (unsigned long)(old - 2));
        if (unlinkat(directory, name, 0) != 0) return; /* none, so no older one either */
    }
}

static long long microseconds(struct timeval a, struct timeval b)
{
    return ((long long)a.tv_sec + b.tv_sec) * 1000000 + a.tv_usec + b.tv_usec;
}

static void find_usage(long long *user, long long *system)
{
    struct rusage self, children;
    memset(&self, 0, sizeof self);
    memset(&children, 0, sizeof children);
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    const struct dcs_grain_run *run = &dcs_grain_run;
    *user = run->usage_told ? run->user_us : microseconds(self.ru_utime, children.ru_utime);
    *system = run->usage_told ? run->system_us : microseconds(self.ru_stime, children.ru_stime);
}

static void write_header(FILE *stream, const char *message)
{
    long long user, system;
    find_usage(&user, &system);
    size_t length = message == NULL ? 0 : strnlen(message, DCS_GRAIN_MESSAGE_BYTES);
    checkpoint.offset = stdin_position();
    checkpoint.offset_field = fprintf(stream, "dcs-checkpoint 1\ninput_offset ");
    checkpoint.offset_digits = fprintf(stream, "%lld", checkpoint.offset < 0 ? 0 : checkpoint.offset);
    fprintf(stream, "\nusage_us %lld %lld\n", user, system);
    fprintf(stream, "message %zu\n\n", length);
    if (length > 0) fwrite(message, 1, length, stream);
    fputc('\n', stream);
    if (fflush(stream) != 0 || ferror(stream)) dcs_grain_fail_write(checkpoint.temporary);
    checkpoint.state_start = ftello(stream);
    if (checkpoint.state_start < 0) dcs_grain_fail_write(checkpoint.temporary);
}

static FILE *open_dropped(void)
{
    FILE *stream = fopen("/dev/null", "we");
    if (stream == NULL) dcs_grain_fail_write("/dev/null");
    return stream;
}

FILE *d_opencheck(const char *message)
{
    dcs_grain_begin();
    if (checkpoint.stream != NULL) dcs_grain_fail_misuse("d_opencheck was called twice without d_closecheck");
    checkpoint.offset_told = -1;
    if (!dcs_grain_run.served) {
        checkpoint.stream = open_dropped();
        return checkpoint.stream;
    }
    if (dcs_grain_run.pid != getpid()) dcs_grain_fail_misuse("a child process of the grain took a checkpoint");
    uint32_t sequence = dcs_grain_run.sequence;
    if (sequence == UINT32_MAX) dcs_grain_fail_misuse("the sequence numbers are exhausted");
    int directory = dcs_grain_open_directory();
    remove_old_checkpoints(directory, sequence);
    snprintf(checkpoint.name, sizeof checkpoint.name, "checkpoint.%lu", (unsigned long)sequence);
    snprintf(checkpoint.temporary, sizeof checkpoint.temporary, "checkpoint.%lu.tmp", (unsigned long)sequence);
    int fd =
        dcs_grain_out_of_the_way(openat(directory, checkpoint.temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (fd < 0) dcs_grain_fail_write(checkpoint.temporary);
    FILE *stream = fdopen(fd, "w");
    if (stream == NULL) dcs_grain_fail_write(checkpoint.temporary);
    checkpoint.directory = directory;
    checkpoint.stream = stream;
    write_header(stream, message);
    /* Cleaners of temporary directories use this time, so it keeps the file. Failure is harmless. */
    utimensat(directory, "input", NULL, 0);
    return stream;
}

void d_input_offset(long long consumed)
{
    if (checkpoint.stream == NULL || consumed < 0)
        dcs_grain_fail_misuse("d_input_offset: negative, or no checkpoint is being written");
    checkpoint.offset_told = consumed;
}

static void write_all(int fd, const char *bytes, size_t length, off_t where)
{
    while (length > 0) {
        ssize_t written = pwrite(fd, bytes, length, where);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) dcs_grain_fail_write(checkpoint.temporary);
        bytes += written;
        length -= (size_t)written;
        where += written;
    }
}

static size_t read_all(int fd, char *bytes, size_t length, off_t where)
{
    size_t done = 0;
    while (done < length) {
        ssize_t got = pread(fd, bytes + done, length - done, where + (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) dcs_grain_fail_write(checkpoint.temporary);
        if (got == 0) break;
        done += (size_t)got;
    }
    return done;
}

/* Replaces stdio's offset by that of d_input_offset; the text after it moves if the number of
 * digits changes. Rare: only for programs that read without stdio. */
static void write_told_offset(int fd)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", checkpoint.offset_told);
    off_t tail = checkpoint.offset_field + checkpoint.offset_digits;
    off_t new_tail = checkpoint.offset_field + length;
    if (tail != new_tail) {
        struct stat status;
        if (fstat(fd, &status) != 0) dcs_grain_fail_write(checkpoint.temporary);
        size_t size = (size_t)(status.st_size - tail);
        char *text = malloc(size);
        if (text == NULL) dcs_grain_fail_write(checkpoint.temporary);
        size = read_all(fd, text, size, tail);
        write_all(fd, text, size, new_tail);
        free(text);
        if (ftruncate(fd, new_tail + (off_t)size) != 0) dcs_grain_fail_write(checkpoint.temporary);
        checkpoint.state_start += new_tail - tail;
    }
    write_all(fd, digits, (size_t)length, checkpoint.offset_field);
}

static void settle_offset(int fd)
{
    if (checkpoint.offset_told >= 0) write_told_offset(fd);
    else if (checkpoint.offset < 0)
        dcs_grain_fail_misuse(
            "cannot determine how much of standard input was consumed; a program "
            "that does not read it by stdio must call d_input_offset");
}

/* Reads the state text back, because it may have been written without stdio. */
static void append_trailer(int fd)
{
    off_t where = checkpoint.state_start;
    uint32_t crc = 0;
    for (;;) {
        char piece[16384];
        size_t got = read_all(fd, piece, sizeof piece, where);
        if (got == 0) break;
        crc = crc32_of(crc, piece, got);
        where += (off_t)got;
    }
    char trailer[64];
    int length = snprintf(trailer, sizeof trailer, "dcs-end %lld %08lX\n", (long long)(where - checkpoint.state_start),
                          (unsigned long)crc);
    write_all(fd, trailer, (size_t)length, where);
}

void d_closecheck(FILE *stream)
{
    if (stream == NULL || stream != checkpoint.stream)
        dcs_grain_fail_misuse("d_closecheck: the stream is not the one that d_opencheck returned");
    if (!dcs_grain_run.served) {
        fclose(stream);
        checkpoint.stream = NULL;
        return;
    }
    dcs_grain_check_complete();
    dcs_grain_flush(stdout, "standard output");
    dcs_grain_flush(stderr, "standard error");
    dcs_grain_flush(stream, checkpoint.temporary);
    int fd = fileno(stream);
    settle_offset(fd);
    dcs_grain_next_increments(checkpoint.directory, dcs_grain_run.sequence + 1);
    append_trailer(fd);
    if (fclose(stream) != 0) dcs_grain_fail_write(checkpoint.temporary);
    if (renameat(checkpoint.directory, checkpoint.temporary, checkpoint.directory, checkpoint.name) != 0)
        dcs_grain_fail_write(checkpoint.name);
    close(checkpoint.directory);
    dcs_grain_run.sequence++;
    checkpoint.stream = NULL;
    dcs_grain_mark_complete(); /* last: a write of another thread may have been under way */
}
