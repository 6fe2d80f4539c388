/* The owner of a host, for tests/perf/courtesy.py.
 *   owner spin MILLISECONDS    computes and prints how many rounds it came to
 *   owner wake MILLISECONDS    sleeps 1 ms repeatedly; prints by how many microseconds it came late: median, 99th
 *                              of a hundred, worst */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most = 1000000 };

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static void spin(long long end) {
    unsigned long long rounds = 0, x = 88172645463325252ULL;
    while (now_ns() < end) {
        for (int i = 0; i < 20000; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        rounds += x != 0;
    }
    printf("%llu\n", rounds);
}

static void wake(long long end) {
    static int late[most];
    int n = 0;
    while (now_ns() < end && n < most) {
        const struct timespec pause = {0, 1000000};
        const long long due = now_ns() + 1000000;
        nanosleep(&pause, NULL);
        late[n++] = (int)((now_ns() - due) / 1000);
    }
    qsort(late, (size_t)n, sizeof late[0], ascending);
    printf("%d %d %d\n", late[n / 2], late[n * 99 / 100], late[n - 1]);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const long long end = now_ns() + atoll(argv[2]) * 1000000;
    if (strcmp(argv[1], "spin") == 0) spin(end);
    else wake(end);
    return 0;
}
