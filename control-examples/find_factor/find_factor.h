/* find_factor: a control program that factors a list of integers on the pool. Declarations shared by its parts;
 * docs/EXAMPLES.md describes how it works and why a plain rerun continues where it stopped. */
#ifndef FIND_FACTOR_H
#define FIND_FACTOR_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <gmp.h>

/* ---- options.c ---- */

/* A level of the search: `curves` curves with these bounds, then the next level. The last level
 * does not end. */
struct level {
    uint64_t b1, b2, curves, curves_per_grain;
};
enum { levels_max = 32 };

struct options {
    struct level levels[levels_max];
    size_t level_count;
    uint64_t seed;     /* sigma of a number's first curve */
    uint64_t grains;   /* maximum number of grains for one number; 0: no limit */
    uint64_t window;   /* maximum number of unfinished grains per number */
    uint64_t parallel; /* numbers processed at a time */
    unsigned host_class;
    char *grain; /* path of ellipsc */
};
/* Exits with 2 on wrong usage, with 0 after --help. */
void options_parse(struct options *options, int argc, char **argv);

/* ---- number_list.c ---- */

struct number_list {
    mpz_t *numbers;
    size_t count;
    uint64_t digest; /* of the numbers, independent of spaces, leading zeros and comments */
};
/* 0, or -1 after a message that names the line. */
int number_list_read(struct number_list *list, FILE *in);
void number_list_clear(struct number_list *list);

/* ---- parts.c: the known parts of one number ---- */

struct parts {
    mpz_t *primes; /* proved */
    size_t prime_count;
    mpz_t *composites; /* no perfect powers, no small divisors; ascending */
    size_t composite_count;
};
struct prover;
void parts_init(struct parts *parts, const mpz_t n, struct prover *prover);
void parts_clear(struct parts *parts);
/* Takes a divisor that a grain found. 1: it splits a composite; 0: it gives no information. */
int parts_split(struct parts *parts, const mpz_t divisor, struct prover *prover);
/* "N = p1 * p2", ascending; factors not known to be prime are marked. The caller frees it. */
char *parts_line(struct parts *parts, const mpz_t n);

/* ---- prover.c: PARI runs in one thread, which serves the others ---- */

struct prover *prover_new(void);
void prover_delete(struct prover *prover);
/* 1: proved prime, 0: composite. For the worker threads; waits for the serving thread. */
int prover_is_prime(struct prover *prover, const mpz_t n);
/* Serves the other threads, in the thread that called prover_new, until `wake` returns 1. `wake` is called
 * after every prover_poke. */
void prover_serve(struct prover *prover, int (*wake)(void *), void *context);
void prover_poke(struct prover *prover);

/* ---- sessions.c ---- */

/* Opens one session for each number of the list, in `sessions`: those of an earlier run with this
 * ident first, then new ones. Returns 0, or -1 after a message. */
int sessions_open(const char *ident, int *sessions, size_t count);

/* ---- search.c: one number ---- */

struct search {
    const struct options *options;
    struct prover *prover;
    int session;
    const mpz_t *n;
    /* result */
    int failed;     /* a message was printed; another run may continue */
    int incomplete; /* the limit of grains is reached */
    char *line;     /* allocated; NULL when failed */
};
void search_run(struct search *search);

/* ---- messages.c: standard error, whole lines, any thread ---- */

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reports a failed library call. `what` and the session describe the place. */
void say_error(int error, int session, const char *what);
/* Whether the scheduler does not answer any more: no new work should be started. */
int scheduler_is_gone(void);
/* "C91 1164020..154679" */
void name_number(char *text, size_t room, const mpz_t n);
/* A text that GMP made. */
void free_text(char *text);

#endif
