#include "refuse.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { orders_max = 16 };

struct order {
    char calls[64], about[256];
    int error, skip, times;
    atomic_int made; /* calls that fit */
};

static struct order orders[orders_max];
static int count, looked;
static atomic_int refused;

static const struct {
    const char *name;
    int number;
} errors[] = {{"EIO", EIO},
              {"ENOSPC", ENOSPC},
              {"EACCES", EACCES},
              {"EPERM", EPERM},
              {"EMFILE", EMFILE},
              {"EXDEV", EXDEV},
              {"ENOMEM", ENOMEM},
              {"ENOSYS", ENOSYS},
              {"EAGAIN", EAGAIN},
              {"ENODEV", ENODEV},
              {"EINVAL", EINVAL},
              {"EROFS", EROFS},
              {"EDQUOT", EDQUOT},
              {"ENOENT", ENOENT},
              {"ESRCH", ESRCH},
              {"EPIPE", EPIPE},
              {"EBUSY", EBUSY},
              {"DONE", 0},
              {"ECONNREFUSED", ECONNREFUSED},
              {"ECONNRESET", ECONNRESET},
              {"ETIMEDOUT", ETIMEDOUT},
              {"EADDRINUSE", EADDRINUSE}};

static int error_of(const char *name) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strcmp(errors[i].name, name) == 0) return errors[i].number;
    char *end = NULL;
    const long number = strtol(name, &end, 10);
    return *name != '\0' && *end == '\0' ? (int)number : -1;
}

/* CALLS:ABOUT:ERROR[:SKIP[:TIMES]] */
static int add(char *text) {
    char *fields[5] = {text, "", "", "0", "0"};
    for (int n = 1; n < 5 && (text = strchr(text, ':')) != NULL; n++) {
        *text++ = '\0';
        fields[n] = text;
    }
    struct order *o = &orders[count];
    const int calls = snprintf(o->calls, sizeof o->calls, ",%s,", fields[0]);
    const int about = snprintf(o->about, sizeof o->about, "%s", fields[1]);
    o->error = error_of(fields[2]);
    o->skip = atoi(fields[3]);
    o->times = atoi(fields[4]);
    atomic_store(&o->made, 0);
    count++;
    return o->error >= 0 && calls < (int)sizeof o->calls && about < (int)sizeof o->about;
}

int dcs_refuse(const char *text) {
    char copy[2048];
    int good = snprintf(copy, sizeof copy, "%s", text) < (int)sizeof copy;
    count = 0;
    atomic_store(&refused, 0);
    looked = 1;
    char *rest = NULL;
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        good = count < orders_max && add(word) && good;
    return good;
}

int dcs_refused(void) { return atomic_load(&refused); }

long dcs_kernel(long number, ...) {
    static __typeof__(syscall) *real;
    if (real == NULL) real = (__typeof__(syscall) *)dlsym(RTLD_NEXT, "syscall");
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void look(void) {
    const char *said = getenv("DCS_REFUSE");
    looked = 1;
    if (said == NULL || dcs_refuse(said)) return;
    static const char text[] = "DCS_REFUSE is not of the form CALLS:ABOUT:ERROR[:SKIP[:TIMES]]\n";
    dcs_kernel(SYS_write, 2L, text, sizeof text - 1);
    _exit(99);
}

static int is_about(const struct order *o, int fd, const char *path) {
    if (o->about[0] == '\0' || (path != NULL && strstr(path, o->about) != NULL)) return 1;
    if (fd < 0) return 0;
    char name[64], leads_to[4096] = "";
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    dcs_kernel(SYS_readlink, name, leads_to, sizeof leads_to - 1);
    return strstr(leads_to, o->about) != NULL;
}

static int names(const struct order *o, const char *call) {
    const size_t length = strlen(call);
    for (const char *at = o->calls; (at = strstr(at, call)) != NULL; at++)
        if (at[-1] == ',' && at[length] == ',') return 1;
    return 0;
}

int dcs_refuses(const char *call, int fd, const char *path) {
    if (!looked) look();
    for (int i = 0; i < count; i++) {
        struct order *o = &orders[i];
        if (!names(o, call) || !is_about(o, fd, path)) continue;
        const int before = atomic_fetch_add(&o->made, 1);
        if (o->skip < 0 ? (before + 1) % -o->skip != 0 : before < o->skip) continue;
        if (o->skip >= 0 && o->times > 0 && before - o->skip >= o->times) continue;
        atomic_fetch_add(&refused, 1);
        errno = o->error;
        return 1;
    }
    return 0;
}
