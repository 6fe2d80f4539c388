/* How much of standard input the program has consumed, without stdio's read-ahead. */
#include "grain_run.h"

#include <sys/stat.h>
#include <unistd.h>

static int is_the_input(int fd)
{
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == dcs_grain_run.input_device &&
           status.st_ino == dcs_grain_run.input_inode;
}

long long dcs_grain_stdin_position(void)
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
