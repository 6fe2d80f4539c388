/* ellipsc: reads the state of a search for factors from standard input (the format is in state.c),
 * tries the remaining curves, and writes
 *
 *   factor P curve SIGMA stage S     if it found one; then it stops
 *   done COUNT                       at the end: the number of curves tried
 *
 * It can be interrupted between curves and within stage 1; its output does not depend on that.
 * Exit status: 0 success (with or without a factor), 1 libecm failed, 2 the state is invalid. */
#include "ellipsc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "grainlib.h"

static void take_checkpoint(const struct state *state)
{
    char message[160];
    snprintf(message, sizeof message, "curve %" PRIu64 " of %" PRIu64 ", sigma %" PRIu64 ": stage 1 at %.0f of %.0f",
             state->next + 1, state->curves, state->sigma + state->next, state->under_way ? state->curve.done : 0,
             state->b1);
    FILE *out = d_opencheck(message);
    state_write(state, out);
    d_closecheck(out);
}

static enum outcome try_curve(struct state *state, double slice, int *stage, mpz_t factor)
{
    enum outcome outcome = OUTCOME_NONE;
    *stage = 1;
    if (!state->under_way) {
        outcome = curve_begin(&state->curve, state->n, state->sigma + state->next, factor);
        state->under_way = 1;
    }
    while (outcome == OUTCOME_NONE && state->curve.done < state->b1) {
        if (d_time_to_ckpt()) take_checkpoint(state);
        double limit = (double)((uint64_t)(state->curve.done / slice) + 1) * slice;
        if (limit > state->b1) limit = state->b1;
        outcome = curve_stage1(&state->curve, state->n, limit, factor);
    }
    if (outcome == OUTCOME_NONE) {
        if (d_time_to_ckpt()) take_checkpoint(state);
        *stage = 2;
        outcome = curve_stage2(&state->curve, state->n, state->b2, factor);
    }
    return outcome;
}

static int search(struct state *state, double slice)
{
    mpz_t factor;
    mpz_init(factor);
    enum outcome outcome = OUTCOME_NONE;
    while (state->next < state->curves && outcome != OUTCOME_FACTOR && outcome != OUTCOME_ERROR) {
        int stage = 0;
        outcome = try_curve(state, slice, &stage, factor);
        if (outcome == OUTCOME_FACTOR)
            gmp_printf("factor %Zd curve %" PRIu64 " stage %d\n", factor, state->sigma + state->next, stage);
        state->next++;
        state->under_way = 0;
        if (outcome == OUTCOME_NONE && d_time_to_ckpt()) take_checkpoint(state);
    }
    mpz_clear(factor);
    if (outcome == OUTCOME_ERROR) {
        fprintf(stderr, "ellipsc: libecm failed on sigma %" PRIu64 "\n", state->sigma + state->next - 1);
        return 1;
    }
    printf("done %" PRIu64 "\n", state->next);
    return 0;
}

int main(int argc, char **argv)
{
    d_handler();
    uint64_t slice = 0;
    if (argc == 3 && strcmp(argv[1], "--slice") == 0) slice = strtoull(argv[2], NULL, 10);
    if (argc != 1 && slice < 2) {
        fprintf(stderr,
                "usage: ellipsc [--slice N] < state\n"
                "  --slice N  split stage 1 at multiples of N (default: depends on n's size)\n");
        return 2;
    }
    struct state state;
    state_init(&state);
    int status = 2;
    if (state_read(&state, stdin) == 0) status = search(&state, slice > 0 ? (double)slice : curve_slice(state.n));
    state_clear(&state);
    return status;
}
