/* ellipsc: a grain that tries elliptic curves on one number. Declarations shared by its parts.
 *
 * It is a filter: the state on standard input (state.c), one line per result on standard output.
 * Curves are Suyama's (libecm's parametrization 0), one per sigma, counted up from the first. */
#ifndef ELLIPSC_H
#define ELLIPSC_H

#include <stdint.h>
#include <stdio.h>

#include <gmp.h>

/* A curve between two slices of its stage 1: Montgomery coefficient, x of the point (z = 1), and
 * the progress of stage 1. libecm needs only A, x and the limit. */
struct curve {
    mpz_t a, x;
    double done;
};

enum outcome {
    OUTCOME_NONE,    /* continue */
    OUTCOME_FACTOR,  /* a proper factor was found */
    OUTCOME_USELESS, /* all primes of n at once: this curve cannot separate them */
    OUTCOME_ERROR    /* libecm failed: out of memory */
};

void curve_init(struct curve *curve);
void curve_clear(struct curve *curve);

/* Computes start point and coefficient for a sigma. A failed division finds a factor. */
enum outcome curve_begin(struct curve *curve, const mpz_t n, uint64_t sigma, mpz_t factor);

/* Stage 1 up to `limit`; the result does not depend on how stage 1 was split. */
enum outcome curve_stage1(struct curve *curve, const mpz_t n, double limit, mpz_t factor);

/* Stage 2 from `done` up to b2; b2 < 0: libecm's choice for b1. Cannot be interrupted. */
enum outcome curve_stage2(struct curve *curve, const mpz_t n, double b2, mpz_t factor);

/* Length of a slice of stage 1: about 50 to 100 ms of work. It depends only on n, so that all runs
 * of a grain are split at the same places. */
double curve_slice(const mpz_t n);

struct state {
    mpz_t n;
    double b1, b2;   /* b2 = -1: libecm's choice */
    uint64_t sigma;  /* of curve 0 */
    uint64_t curves; /* number of curves */
    uint64_t next;   /* index of the next curve, or of the one in progress */
    int under_way;   /* `curve` is in progress */
    struct curve curve;
};

void state_init(struct state *state);
void state_clear(struct state *state);

/* Reads up to and including the line "end". Returns 0, or -1 after a message on standard error. */
int state_read(struct state *state, FILE *in);
void state_write(const struct state *state, FILE *out);

#endif
