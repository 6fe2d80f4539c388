/* count_primes: pi(LIMIT), the number of primes below a limit, counted by many grains at once. It submits all of
 * them in batches, takes all results in batches and adds them up; run again after a kill, it makes the same
 * calls and gets the same results. With --grains 1000000 it runs a million small grains.
 *
 * Exit status: 0 if it succeeds and, for a power of ten, the result equals the published value; 1: an error, or the
 * count is not the published one; 2: wrong usage. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dcs.h"

enum { batch = 1024, grains_max = 100000000, no_space_pause_s = 5, notice_minutes = 1 };
#define LIMIT_MAX UINT64_C(1000000000000000)

/* OEIS A006880: the number of primes below 10^n. */
static const uint64_t published[] = {
    0,       4,        25,        168,        1229,        9592,         78498,         664579,
    5761455, 50847534, 455052511, 4118054813, 37607912018, 346065536839, 3204941750802, 29844570422669};

struct work {
    uint64_t limit;
    uint32_t grains;
    char *grain_path;
    int session;
};

static struct d_grain_order orders[batch];
static struct d_result results[batch];
static char inputs[batch][48];

/* The grain program in the directory of this program. */
static char *default_grain(void)
{
    static char path[PATH_MAX + 16];
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    strcpy(slash != NULL ? slash + 1 : path, "primes_between");
    return path;
}

static int say_error(int error, const char *what)
{
    fprintf(stderr, "count_primes: %s: %s (%s)\n", what, d_errortext(), d_strerror(error));
    fputs("Run the same command again when the cause is removed: it continues where it was.\n", stderr);
    return -1;
}

/* The user's name as the scheduler knows it. */
static void login_name(char *name, size_t room)
{
    const struct passwd *entry = getpwuid(geteuid());
    if (entry != NULL) snprintf(name, room, "%s", entry->pw_name);
    else snprintf(name, room, "uid%lu", (unsigned long)geteuid());
}

/* The session with this ident, or 0. */
static int find(const struct d_info *info, const char *user, const char *ident)
{
    for (size_t i = 0; i < info->session_count; i++)
        if (strcmp(info->sessions[i].user, user) == 0 && strcmp(info->sessions[i].ident, ident) == 0)
            return info->sessions[i].session;
    return 0;
}

static int is_used(const struct d_info *info, const char *user, int number)
{
    for (size_t i = 0; i < info->session_count; i++)
        if (info->sessions[i].session == number && strcmp(info->sessions[i].user, user) == 0) return 1;
    return 0;
}

/* Resumes the session of this computation, which has its ident, from an earlier run, or opens one with the first free
 * number. Returns the number, or the error of dcs.h as a negative number. */
static int own_session(const char *ident)
{
    char user[256];
    struct d_info *info = NULL;
    login_name(user, sizeof user);
    int error = d_get_auth(ident);
    if (error == NO_ERROR) error = d_query(D_Q_SESSIONS, user, -1, -1, &info);
    if (error != NO_ERROR) return -error;
    int number = find(info, user, ident);
    if (number > 0) {
        error = d_resume_ses(number, TRUE);
    } else {
        /* Another program of this user has taken the number since the query: try the next one. */
        do {
            do number++;
            while (is_used(info, user, number));
            error = d_resume_ses(number, TRUE);
        } while (error == D_E_SESSION_TAKEN || error == D_E_SESSION_CLOSED);
    }
    d_query_free(info);
    return error == NO_ERROR ? number : -error;
}

/* The first number of a segment; segment `grains` begins at the limit. */
static uint64_t begin_of(const struct work *work, uint32_t segment)
{
    return work->limit / work->grains * segment + work->limit % work->grains * segment / work->grains;
}

static int submit(const struct work *work)
{
    char *argv[] = {work->grain_path, NULL};
    for (uint32_t at = 0; at < work->grains;) {
        size_t count = 0, taken = 0;
        for (; count < batch && at + count < work->grains; count++) {
            uint32_t segment = at + (uint32_t)count;
            struct d_grain *grain = &orders[count].grain;
            d_grain_order_init(&orders[count], (int)segment);
            grain->gargv = argv;
            grain->input = inputs[count];
            grain->input_length = (size_t)snprintf(inputs[count], sizeof inputs[count], "%" PRIu64 " %" PRIu64 " 0\n",
                                                   begin_of(work, segment), begin_of(work, segment + 1));
            grain->notice = notice_minutes;
        }
        int error = d_gexec_many(work->session, orders, count, &taken, NULL);
        at += (uint32_t)taken;
        if (error == D_E_NO_SPACE) {
            fputs("count_primes: the scheduler's disk is full; trying again\n", stderr);
            sleep(no_space_pause_s);
        } else if (error != NO_ERROR) {
            return say_error(error, "cannot submit a grain");
        }
    }
    return 0;
}

static int add_up(const struct work *work, uint64_t *primes)
{
    d_result_init(results, batch);
    for (uint32_t done = 0; done < work->grains;) {
        int count = 0, error = d_gwait_many(D_BLOCK, work->session, batch, results, &count);
        if (error != NO_ERROR) return say_error(error, "cannot wait for results");
        for (int i = 0; i < count; i++) {
            const struct d_result *result = &results[i];
            uint64_t primes_here;
            if (result->termsig != 0 || result->retcode != 0 || sscanf(result->output, "%" SCNu64, &primes_here) != 1) {
                fprintf(stderr, "count_primes: grain %d failed with signal %d, status %d: %.300s\n", result->grain_num,
                        result->termsig, result->retcode, result->error);
                return -1;
            }
            *primes += primes_here;
        }
        if (done / (work->grains / 10 + 1) != (done + (uint32_t)count) / (work->grains / 10 + 1))
            fprintf(stderr, "count_primes: %" PRIu32 " of %" PRIu32 " grains done\n", done + (uint32_t)count,
                    work->grains);
        done += (uint32_t)count;
    }
    return 0;
}

/* Returns 1 and the exponent if the limit is a power of ten. */
static int power_of_ten(uint64_t limit, size_t *exponent)
{
    for (*exponent = 0; limit > 1 && limit % 10 == 0; limit /= 10) ++*exponent;
    return limit == 1;
}

static int judge(uint64_t limit, uint64_t primes)
{
    size_t exponent;
    printf("%" PRIu64 "\n", primes);
    if (!power_of_ten(limit, &exponent)) return 0;
    if (primes == published[exponent]) {
        fprintf(stderr, "count_primes: this is the published pi(10^%zu)\n", exponent);
        return 0;
    }
    fprintf(stderr, "count_primes: the published pi(10^%zu) is %" PRIu64 "\n", exponent, published[exponent]);
    return 1;
}

static int parse(const char *text, uint64_t most, uint64_t *value)
{
    char *end = NULL;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *text != '-' && *value >= 1 && *value <= most;
}

static int options(struct work *work, int argc, char **argv)
{
    uint64_t number;
    int good = 1;
    for (int i = 1; i < argc && good; i++) {
        if (strcmp(argv[i], "--grains") == 0 && i + 1 < argc)
            good = parse(argv[++i], grains_max, &number) && (work->grains = (uint32_t)number) > 0;
        else if (strcmp(argv[i], "--grain") == 0 && i + 1 < argc) work->grain_path = argv[++i];
        else good = parse(argv[i], LIMIT_MAX, &work->limit);
    }
    if (!good)
        fputs(
            "usage: count_primes [--grains N] [--grain PATH] [LIMIT]\n"
            "Counts the primes below LIMIT (default 10000000000, at most 10^15) by N grains (default 1000).\n",
            stderr);
    return good;
}

int main(int argc, char **argv)
{
    struct work work = {.limit = UINT64_C(10000000000), .grains = 1000, .grain_path = default_grain()};
    if (!options(&work, argc, argv)) return 2;
    char ident[64];
    snprintf(ident, sizeof ident, "count_primes-%" PRIu64 "-%" PRIu32, work.limit, work.grains);
    work.session = own_session(ident);
    if (work.session < 0) return say_error(-work.session, "cannot open a session") != 0;
    uint64_t primes = 0;
    if (submit(&work) != 0 || add_up(&work, &primes) != 0) return 1;
    int error = d_close_ses(work.session);
    if (error != NO_ERROR) return say_error(error, "cannot close the session") != 0;
    return judge(work.limit, primes);
}
