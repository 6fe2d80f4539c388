/* Loaded into whatever an environment of others reaches: leaves a file in DCS_WITNESS that says which user that was. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void testify(void) {
    const char *folder = getenv("DCS_WITNESS");
    char path[512];
    int fd;

    if (folder == NULL) return;
    snprintf(path, sizeof path, "%s/uid-%d", folder, (int)geteuid());
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
}
