/* The search for the factors of one number.
 *
 * All decisions depend only on the number, the options and the results of d_gwait_result
 * in their order, so that a rerun repeats the same calls up to the place where the last run was
 * stopped. Neither the clock nor d_query affects them. */
#include "find_factor.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dcs.h"

/* After this number of consecutive bad grains the program or the pool is assumed to be faulty. */
enum { bad_grains_max = 10, notice_minutes = 1, no_space_pause_s = 5 };

struct grain {
    size_t level;
    uint64_t curves;
    int reported;
};

struct work {
    struct search *search;
    struct parts parts;
    uint64_t level_curves[levels_max]; /* submitted and not withdrawn, by level */
    size_t level;                      /* of the last submission */
    uint64_t sigma;                    /* of the next curve */
    struct grain *grains;              /* by grain number */
    size_t grains_room;
    int next_grain;
    int first_live;       /* grains below it belong to a composite that has been split */
    uint64_t outstanding; /* live, submitted, not reported */
    uint64_t curves_done;
    unsigned bad_in_a_row;
    time_t last_message;
};

static void progress(struct work *work, int at_once)
{
    time_t now = time(NULL);
    if (!at_once && now - work->last_message < 2) return;
    work->last_message = now;
    char name[64] = "all factors are known";
    if (work->parts.composite_count > 0) name_number(name, sizeof name, work->parts.composites[0]);
    say("session %d: %s: %" PRIu64 " curves done, %zu prime factors known, B1 now %" PRIu64, work->search->session,
        name, work->curves_done, work->parts.prime_count, work->search->options->levels[work->level].b1);
}

/* The number of curves of the next grain, and its level: the first one that is not finished. */
static uint64_t next_curves(struct work *work)
{
    const struct options *options = work->search->options;
    size_t last = options->level_count - 1;
    work->level = 0;
    while (work->level < last && work->level_curves[work->level] >= options->levels[work->level].curves) work->level++;
    const struct level *level = &options->levels[work->level];
    uint64_t left = level->curves - work->level_curves[work->level];
    return work->level < last && left < level->curves_per_grain ? left : level->curves_per_grain;
}

static int may_submit(const struct work *work)
{
    const struct options *options = work->search->options;
    return work->next_grain < INT_MAX && (options->grains == 0 || (uint64_t)work->next_grain < options->grains);
}

static void note_grain(struct work *work, uint64_t curves)
{
    if ((size_t)work->next_grain >= work->grains_room) {
        size_t room = 2 * work->grains_room + 64;
        struct grain *more = realloc(work->grains, room * sizeof *more);
        if (more == NULL) abort();
        work->grains = more;
        work->grains_room = room;
    }
    work->grains[work->next_grain++] = (struct grain){work->level, curves, 0};
    work->level_curves[work->level] += curves;
    work->sigma += curves;
    work->outstanding++;
}

static int submit(struct work *work)
{
    uint64_t curves = next_curves(work);
    const struct options *options = work->search->options;
    const struct level *level = &options->levels[work->level];
    char *input = NULL;
    if (gmp_asprintf(&input,
                     "ellipsc 1\nn %Zd\nb1 %" PRIu64 "\nb2 %" PRIu64 "\nsigma %" PRIu64 "\ncurves %" PRIu64 "\nend\n",
                     work->parts.composites[0], level->b1, level->b2, work->sigma, curves) < 0)
        abort();
    char *arguments[] = {options->grain, NULL};
    struct d_grain grain;
    d_grain_init(&grain);
    grain.gargv = arguments;
    grain.input = input;
    grain.input_length = strlen(input);
    grain.host_class = options->host_class;
    grain.notice = notice_minutes;
    int error;
    while ((error = d_gexec_grain(work->search->session, work->next_grain, &grain)) == D_E_NO_SPACE) {
        say("session %d: the scheduler's disk is full; trying again", work->search->session);
        sleep(no_space_pause_s);
    }
    free_text(input);
    if (error != NO_ERROR) {
        char what[64];
        snprintf(what, sizeof what, "cannot submit grain %d", work->next_grain);
        say_error(error, work->search->session, what);
        return -1;
    }
    note_grain(work, curves);
    return 0;
}

static int fill_window(struct work *work)
{
    while (work->outstanding < work->search->options->window && may_submit(work))
        if (submit(work) != 0) return -1;
    return 0;
}

/* The composite of the unfinished grains was split: withdraws them; the curves that they
 * did not try will be tried on a part. */
static int withdraw_live(struct work *work)
{
    for (int grain = work->first_live; grain < work->next_grain; grain++) {
        if (work->grains[grain].reported) continue;
        int error = d_gkill(work->search->session, grain);
        if (error != NO_ERROR) {
            say_error(error, work->search->session, "cannot withdraw a grain");
            return -1;
        }
        work->level_curves[work->grains[grain].level] -= work->grains[grain].curves;
    }
    work->first_live = work->next_grain;
    work->outstanding = 0;
    return 0;
}

/* Reads the lines of a grain. 1: a composite was split. -1: the output is not ellipsc's. */
static int read_output(struct work *work, const char *output)
{
    int split = 0, whole = 0;
    mpz_t factor;
    mpz_init(factor);
    for (const char *line = output; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        uint64_t count = 0;
        char digits[1024], sigma[32];
        int stage = 0;
        if (sscanf(line, "done %" SCNu64, &count) == 1) {
            whole = 1;
            work->curves_done += count;
        } else if (sscanf(line, "factor %1023[0-9] curve %31[0-9] stage %d", digits, sigma, &stage) == 3) {
            char name[64] = "";
            if (work->parts.composite_count > 0) name_number(name, sizeof name, work->parts.composites[0]);
            mpz_set_str(factor, digits, 10);
            if (parts_split(&work->parts, factor, work->search->prover)) {
                split = 1;
                say("session %d: factor %s of %s, by curve %s in stage %d", work->search->session, digits, name, sigma,
                    stage);
            }
        }
    }
    mpz_clear(factor);
    return whole ? split : -1;
}

static int take_bad_grain(struct work *work, int grain, int signal, int code, const char *error)
{
    int session = work->search->session;
    if (signal != 0) say("session %d: grain %d was ended by signal %d: %.200s", session, grain, signal, error);
    else say("session %d: grain %d ended with code %d and gave no result: %.200s", session, grain, code, error);
    if (++work->bad_in_a_row < bad_grains_max) return 0; /* its curves are lost; others follow */
    say("session %d: %d grains in a row failed; something is wrong with %s on the hosts. Close and "
        "clean the session when it is repaired, then run this again.",
        session, bad_grains_max, work->search->options->grain);
    return -1;
}

/* Takes one result, or the answer that there will be none. */
static int take_result(struct work *work)
{
    struct d_result result;
    d_result_init(&result, 1);
    int error = d_gwait_result(D_BLOCK, work->search->session, &result);
    const int grain = result.grain_num;
    if (error == D_E_NOTHING_LEFT) {
        /* The remaining grains were killed with `dcs grain kill`. */
        work->first_live = work->next_grain;
        work->outstanding = 0;
        return 0;
    }
    if (error != NO_ERROR) {
        say_error(error, work->search->session, "cannot wait for results");
        return -1;
    }
    while (grain >= work->next_grain && may_submit(work)) {
        /* Replays the branch above: the earlier run had learned that nothing is
         * left, and had continued to submit. */
        work->first_live = work->next_grain;
        work->outstanding = 0;
        if (fill_window(work) != 0) return -1;
    }
    if (grain < 0 || grain >= work->next_grain || work->grains[grain].reported)
        return 0; /* not one of this run's grains */
    work->grains[grain].reported = 1;
    if (grain >= work->first_live) work->outstanding--;
    int split = result.termsig == 0 && result.retcode == 0 ? read_output(work, result.output) : -1;
    if (split < 0) return take_bad_grain(work, grain, result.termsig, result.retcode, result.error);
    work->bad_in_a_row = 0;
    progress(work, split);
    return split && work->parts.composite_count > 0 ? withdraw_live(work) : 0;
}

static int run(struct work *work)
{
    struct search *search = work->search;
    while (work->parts.composite_count > 0) {
        if (fill_window(work) != 0) return -1;
        if (work->outstanding == 0) {
            /* The session stays open: a rerun with a higher limit continues it. */
            say("session %d: %d grains did not suffice; a rerun with a higher --grains continues", search->session,
                work->next_grain);
            search->incomplete = 1;
            return 0;
        }
        if (take_result(work) != 0) return -1;
    }
    int error = d_close_ses(search->session);
    if (error != NO_ERROR) {
        say_error(error, search->session, "cannot close the session");
        return -1;
    }
    return 0;
}

void search_run(struct search *search)
{
    struct work work;
    memset(&work, 0, sizeof work);
    work.search = search;
    work.sigma = search->options->seed;
    parts_init(&work.parts, *search->n, search->prover);
    search->failed = run(&work) != 0;
    if (!search->failed) search->line = parts_line(&work.parts, *search->n);
    parts_clear(&work.parts);
    free(work.grains);
}
