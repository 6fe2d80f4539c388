/* find_factor: a control program that factors a list of integers on the pool. What its parts share;
 * docs/FIND_FACTOR.md tells how it works and why a plain rerun goes on where it stopped. */
#ifndef FIND_FACTOR_H
#define FIND_FACTOR_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <gmp.h>

/* ---- options.c ---- */

/* A stage of the search: `curves` curves with these bounds, then the next level. The last level
 * goes on for ever. */
struct level {
    uint64_t b1, b2, curves, curves_per_grain;
};
enum { levels_max = 32 };

struct options {
    struct level levels[levels_max];
    size_t level_count;
    uint64_t seed;        /* sigma of a number's first curve */
    uint64_t grains;      /* most grains for one number; 0: no limit */
    uint64_t window;      /* submitted and not yet finished, per number */
    uint64_t parallel;    /* numbers under way at a time */
    unsigned host_class;
    char *grain;          /* path of ellipsc */
};
/* Exits with 2 on wrong usage, with 0 after --help. */
void options_parse(struct options *options, int argc, char **argv);

/* ---- number_list.c ---- */

struct number_list {
    mpz_t *numbers;
    size_t count;
    uint64_t digest; /* of the numbers, whatever spaces, zeros and comments surround them */
};
/* 0, or -1 after a message that names the line. */
int number_list_read(struct number_list *list, FILE *in);
void number_list_clear(struct number_list *list);

/* ---- parts.c: what is known about one number ---- */

struct parts {
    mpz_t *primes;     /* proved */
    size_t prime_count;
    mpz_t *composites; /* no perfect powers, no small divisors; smallest first */
    size_t composite_count;
};
struct prover;
void parts_init(struct parts *parts, const mpz_t n, struct prover *prover);
void parts_clear(struct parts *parts);
/* Takes a divisor that a grain found. 1: it splits a composite; 0: it tells nothing. */
int parts_split(struct parts *parts, const mpz_t divisor, struct prover *prover);
/* "N = p1 * p2", ascending; what is not known to be prime is marked. The caller frees it. */
char *parts_line(struct parts *parts, const mpz_t n);

/* ---- prover.c: PARI belongs to one thread, the others ask ---- */

struct prover *prover_new(void);
void prover_delete(struct prover *prover);
/* 1: proved prime, 0: composite. For the worker threads; waits for the serving thread. */
int prover_is_prime(struct prover *prover, const mpz_t n);
/* Proves for the others, in the thread that called prover_new, until wake says 1. `wake` is called
 * after every prover_poke. */
void prover_serve(struct prover *prover, int (*wake)(void *), void *context);
void prover_poke(struct prover *prover);

/* ---- sessions.c ---- */

/* One open session for each number of the list, in `sessions`: those of an earlier run with this
 * ident first, then new ones. 0, or -1 after a message. */
int sessions_open(const char *ident, int *sessions, size_t count);

/* ---- search.c: one number ---- */

struct search {
    const struct options *options;
    struct prover *prover;
    int session;
    const mpz_t *n;
    /* result */
    int failed;     /* a message is out; another run may go on */
    int incomplete; /* the grains are used up */
    char *line;     /* allocated; NULL when failed */
};
void search_run(struct search *search);

/* ---- messages.c: standard error, whole lines, any thread ---- */

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A library call failed. `what` and the session say where. */
void say_error(int error, int session, const char *what);
/* The scheduler does not answer any more: nothing new should be begun. */
int scheduler_is_gone(void);
/* "C91 1164020..154679" */
void name_number(char *text, size_t room, const mpz_t n);

#endif
