/* Loaded into a process, it has that process read clocks that were set: by the seconds that the file of the
 * variable DCS_STEPPED_CLOCK says, two 64-bit numbers, at any time. The first is added to the wall clock, the second to
 * the boot clock, which counts on while a machine sleeps. So a host's clock can step in a test, and the machine's does
 * not. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *steps;
static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_settime)(int, int, const struct itimerspec *, struct itimerspec *);

__attribute__((constructor)) static void look_for_steps(void) {
    const char *path = getenv("DCS_STEPPED_CLOCK");
    void *at;
    int fd;

    real_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    real_settime =
        (int (*)(int, int, const struct itimerspec *, struct itimerspec *))dlsym(RTLD_NEXT, "timerfd_settime");
    if (path == NULL || (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0) return;
    at = mmap(NULL, 2 * sizeof *steps, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (at != MAP_FAILED) steps = at;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (real_gettime == NULL) look_for_steps(); /* another library's constructor, before ours */
    if (real_gettime(clock, now) != 0) return -1;
    if (steps == NULL) return 0;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI) now->tv_sec += steps[0];
    if (clock == CLOCK_BOOTTIME) now->tv_sec += steps[1];
    return 0;
}

time_t time(time_t *to) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (to != NULL) *to = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone) {
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    to->tv_sec = now.tv_sec;
    to->tv_usec = now.tv_nsec / 1000;
    return 0;
}

/* The kernel's boot clock was not set. The daemons have no alarm by another clock. */
int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *old) {
    struct itimerspec shifted = *when;

    if (real_settime == NULL) look_for_steps();
    if (steps != NULL && (flags & TFD_TIMER_ABSTIME) && (when->it_value.tv_sec != 0 || when->it_value.tv_nsec != 0)) {
        shifted.it_value.tv_sec -= steps[1];
        if (shifted.it_value.tv_sec < 0) shifted.it_value.tv_sec = 0;
        if (shifted.it_value.tv_sec == 0 && shifted.it_value.tv_nsec == 0) shifted.it_value.tv_nsec = 1;
    }
    return real_settime(fd, flags, &shifted, old);
}
