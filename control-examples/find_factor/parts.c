/* The known parts of one number: proved primes, and composites that remain to be split. */
#include "find_factor.h"

#include <stdlib.h>
#include <string.h>

enum { trial_limit = 1000000 };

static void add(mpz_t **array, size_t *count, const mpz_t n)
{
    mpz_t *more = realloc(*array, (*count + 1) * sizeof *more);
    if (more == NULL) abort();
    *array = more;
    /* Sorted, so that neither the line nor the order of the work depends on the order of discovery. */
    size_t place = (*count)++;
    while (place > 0 && mpz_cmp(more[place - 1], n) > 0) {
        memcpy(&more[place], &more[place - 1], sizeof more[place]);
        place--;
    }
    mpz_init_set(more[place], n);
}

/* n = root^k with the largest k; returns k. */
static unsigned long largest_root(mpz_t root, const mpz_t n)
{
    if (mpz_perfect_power_p(n))
        for (unsigned long k = mpz_sizeinbase(n, 2); k > 1; k--)
            if (mpz_root(root, n, k)) return k;
    mpz_set(root, n);
    return 1;
}

/* Classifies a divisor: 1, a prime, or a composite. */
static void classify(struct parts *parts, const mpz_t n, struct prover *prover)
{
    if (mpz_cmp_ui(n, 1) == 0) return;
    mpz_t root;
    mpz_init(root);
    unsigned long power = largest_root(root, n);
    int prime = mpz_probab_prime_p(root, 2) > 0 && prover_is_prime(prover, root);
    for (; power > 0; power--) {
        if (prime) add(&parts->primes, &parts->prime_count, root);
        else add(&parts->composites, &parts->composite_count, root);
    }
    mpz_clear(root);
}

void parts_init(struct parts *parts, const mpz_t n, struct prover *prover)
{
    memset(parts, 0, sizeof *parts);
    mpz_t rest, prime;
    mpz_init_set(rest, n);
    mpz_init(prime);
    /* Tries all odd numbers: a composite one cannot divide any more. */
    for (unsigned long p = 2; p < trial_limit && mpz_cmp_ui(rest, 1) > 0; p += p == 2 ? 1 : 2) {
        while (mpz_divisible_ui_p(rest, p)) {
            mpz_divexact_ui(rest, rest, p);
            mpz_set_ui(prime, p);
            add(&parts->primes, &parts->prime_count, prime);
        }
    }
    classify(parts, rest, prover);
    mpz_clears(rest, prime, NULL);
}

void parts_clear(struct parts *parts)
{
    for (size_t i = 0; i < parts->prime_count; i++) mpz_clear(parts->primes[i]);
    for (size_t i = 0; i < parts->composite_count; i++) mpz_clear(parts->composites[i]);
    free(parts->primes);
    free(parts->composites);
}

int parts_split(struct parts *parts, const mpz_t divisor, struct prover *prover)
{
    mpz_t common, rest;
    mpz_inits(common, rest, NULL);
    int split = 0;
    for (size_t i = 0; i < parts->composite_count && !split; i++) {
        mpz_gcd(common, divisor, parts->composites[i]);
        if (mpz_cmp_ui(common, 1) == 0 || mpz_cmp(common, parts->composites[i]) == 0) continue;
        split = 1;
        mpz_divexact(rest, parts->composites[i], common);
        mpz_clear(parts->composites[i]);
        parts->composite_count--;
        memmove(&parts->composites[i], &parts->composites[i + 1],
                (parts->composite_count - i) * sizeof *parts->composites);
        classify(parts, common, prover);
        classify(parts, rest, prover);
    }
    mpz_clears(common, rest, NULL);
    return split;
}

char *parts_line(struct parts *parts, const mpz_t n)
{
    char *line = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&line, &length);
    if (out == NULL) abort();
    gmp_fprintf(out, "%Zd =", n);
    if (mpz_cmp_ui(n, 1) == 0) fputs(" 1", out);
    size_t prime = 0, composite = 0;
    const char *separator = " ";
    while (prime < parts->prime_count || composite < parts->composite_count) {
        int take_prime =
            composite == parts->composite_count ||
            (prime < parts->prime_count && mpz_cmp(parts->primes[prime], parts->composites[composite]) < 0);
        if (take_prime) gmp_fprintf(out, "%s%Zd", separator, parts->primes[prime++]);
        else gmp_fprintf(out, "%s%Zd (composite)", separator, parts->composites[composite++]);
        separator = " * ";
    }
    fputc('\n', out);
    fclose(out);
    return line;
}
