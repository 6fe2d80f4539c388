/* Loaded into a process, it has its keeper (dcs_keeper) look up logins as at a directory service that is away: by the
 * number that the file of the variable DCS_SLOW_USERS has at the time, an int, for uids, and DCS_SLOW_NAMES for names.
 * A look-up fails with that error; it does not come back while the number is -1. The keeper may not open the files, so
 * they are mapped before. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static volatile const int *users, *names;

static const int *number_of(const char *variable) {
    const char *path = getenv(variable);
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(int), PROT_READ, MAP_SHARED, fd, 0);

    if (fd >= 0) close(fd);
    return at == MAP_FAILED ? NULL : at;
}

__attribute__((constructor)) static void look_for_the_numbers(void) {
    users = number_of("DCS_SLOW_USERS");
    names = number_of("DCS_SLOW_NAMES");
}

/* 0: the look-up goes through. */
static int error_of_now(volatile const int *number) {
    char name[16] = "";

    prctl(PR_GET_NAME, name, 0, 0, 0);
    if (number == NULL || strcmp(name, "dcs_keeper") != 0) return 0;
    while (*number < 0) usleep(20000);
    return *number;
}

int getpwuid_r(uid_t uid, struct passwd *entry, char *bytes, size_t size, struct passwd **found) {
    static int (*real)(uid_t, struct passwd *, char *, size_t, struct passwd **);
    int error = error_of_now(users);

    if (real == NULL) real = (__typeof__(real))dlsym(RTLD_NEXT, "getpwuid_r");
    if (error == 0) return real(uid, entry, bytes, size, found);
    *found = NULL;
    return error;
}

int getpwnam_r(const char *login, struct passwd *entry, char *bytes, size_t size, struct passwd **found) {
    static int (*real)(const char *, struct passwd *, char *, size_t, struct passwd **);
    int error = error_of_now(names);

    if (real == NULL) real = (__typeof__(real))dlsym(RTLD_NEXT, "getpwnam_r");
    if (error == 0) return real(login, entry, bytes, size, found);
    *found = NULL;
    return error;
}
