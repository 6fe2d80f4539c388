/* The paper's Appendix A made whole: a checkpointing grain. It walks points of affine elliptic
 * curves y^2 = x^3 + a x + b modulo n through the powers of the primes; a division that fails shows
 * a factor.
 *
 * Standard input, one item per line: n (hexadecimal), powersize (hexadecimal), offset in the file
 * of primes, number of primes that are done, number of primes to do, number of curves, and x, y and
 * a (hexadecimal) of each curve. argv[1], if given, names a file of primes, one per line: the paper's
 * read-only file whose position belongs to the checkpoint. */
#include "grainlib.h" /* includes stdio.h */

#include <stdlib.h>
#include <string.h>

#include <gmp.h>

enum { MAXCURVES = 1000, MAXPRIMES = 10000000, DIGITS = 2000 };

typedef mpz_t MULTIPRECISION;

static MULTIPRECISION n, x[MAXCURVES], y[MAXCURVES], a[MAXCURVES];
static MULTIPRECISION g, slope, s, t, px, py;

static char *outhex(const MULTIPRECISION number, char *text) { return mpz_get_str(text, 16, number); }

static int inhex(MULTIPRECISION number) {
    char text[DIGITS + 1];
    return scanf("%2000s", text) == 1 && mpz_set_str(number, text, 16) == 0 && mpz_sgn(number) >= 0;
}

/* slope = numerator / denominator; 0 without an inverse, and g is what denominator shares with n */
static int divide(const MULTIPRECISION numerator, const MULTIPRECISION denominator) {
    if (!mpz_invert(slope, denominator, n)) {
        mpz_gcd(g, denominator, n);
        return 0;
    }
    mpz_mul(slope, slope, numerator);
    mpz_mod(slope, slope, n);
    return 1;
}

/* (px, py) takes the third point of the chord or tangent with that slope, from (px, py), (qx, .) */
static void third_point(const MULTIPRECISION qx) {
    mpz_mul(s, slope, slope);
    mpz_sub(s, s, px);
    mpz_sub(s, s, qx);
    mpz_mod(s, s, n);
    mpz_sub(t, px, s);
    mpz_mul(t, t, slope);
    mpz_sub(t, t, py);
    mpz_mod(py, t, n);
    mpz_set(px, s);
}

static int double_point(int i) {
    mpz_mul(t, px, px);
    mpz_mul_ui(t, t, 3);
    mpz_add(t, t, a[i]);
    mpz_mul_2exp(s, py, 1);
    if (!divide(t, s)) return 0;
    third_point(px);
    return 1;
}

static int add_start(int i) {
    mpz_sub(t, py, y[i]);
    mpz_sub(s, px, x[i]);
    if (!divide(t, s)) return 0;
    third_point(x[i]);
    return 1;
}

/* (x[i], y[i]) times k, from k's second highest bit down; 0: a division failed */
static int multiply(int i, unsigned long k) {
    unsigned long bit = 1;
    while (bit <= k / 2) bit *= 2;
    mpz_set(px, x[i]);
    mpz_set(py, y[i]);
    while ((bit /= 2) > 0) {
        if (!double_point(i)) return 0;
        if ((k & bit) && !add_start(i)) return 0;
    }
    mpz_set(x[i], px);
    mpz_set(y[i], py);
    return 1;
}

static unsigned long nextprime(FILE *fp) {
    static MULTIPRECISION prime;
    static unsigned long last = 1;
    static int begun = 0;
    unsigned long p = 0;
    if (fp != NULL) return fscanf(fp, "%lu", &p) == 1 && p > 1 ? p : 0;
    if (!begun) mpz_init(prime);
    begun = 1;
    mpz_set_ui(prime, last);
    mpz_nextprime(prime, prime);
    return last = mpz_get_ui(prime);
}

static _Noreturn void refuse(const char *why) {
    fprintf(stderr, "appendix_a: %s\n", why);
    exit(2);
}

/* one prime for all curves; 1: a factor was printed */
static int step(unsigned long prime, int powersize, int *numcurves) {
    unsigned long power = prime;
    while (power <= (unsigned long)powersize / prime) power *= prime;
    for (int i = 0; i < *numcurves; i++) {
        if (multiply(i, power)) continue;
        if (mpz_cmp(g, n) < 0) {
            char o1[DIGITS + 3];
            gmp_printf("factor %Zd prime %lu a %s\n", g, prime, outhex(a[i], o1));
            return 1;
        }
        /* infinity modulo all primes of n at once: this curve is of no more use */
        --*numcurves;
        mpz_swap(x[i], x[*numcurves]);
        mpz_swap(y[i], y[*numcurves]);
        mpz_swap(a[i], a[*numcurves]);
        i--;
    }
    return 0;
}

int main(int argc, char **argv) {
    FILE *ckfpb, *fp = NULL; /* fp, for example of checkpointing read only file */
    char message[100], o1[DIGITS + 3], o2[DIGITS + 3], o3[DIGITS + 3];
    int powersize, pkntnr, pkntlim2, numcurves, i, found = 0;
    long offset;

    /* set up signal handler for checkpointing */
    d_ghandler();

    /* read and create initial program state from standard input */
    mpz_inits(n, g, slope, s, t, px, py, NULL);
    if (!inhex(n) || mpz_cmp_ui(n, 3) <= 0 || mpz_sizeinbase(n, 16) > DIGITS - 1)
        refuse("expected n, hexadecimal and greater than 3");
    if (scanf("%x%ld%d%d%d", (unsigned *)&powersize, &offset, &pkntnr, &pkntlim2, &numcurves) != 5 || powersize < 1 ||
        offset < 0 || pkntnr < 0 || pkntlim2 < 0 || pkntlim2 > MAXPRIMES || numcurves < 0 || numcurves > MAXCURVES)
        refuse("expected powersize, file offset, primes done, primes to do and number of curves");
    for (i = 0; i < numcurves; i++) {
        mpz_inits(x[i], y[i], a[i], NULL);
        if (!inhex(x[i]) || !inhex(y[i]) || !inhex(a[i])) refuse("expected x, y and a of each curve, hexadecimal");
    }
    if (argc > 1) {
        fp = fopen(argv[1], "r");
        if (fp == NULL || fseek(fp, offset, SEEK_SET) != 0) refuse("cannot read the file of primes");
    } else {
        for (i = 0; i < pkntnr; i++) nextprime(NULL);
    }

    while (pkntnr < pkntlim2 && numcurves > 0 && !found) {
        /* checkpoint at location where consistent program state can be specified */
        if (d_time_to_ckpt()) {
            snprintf(message, sizeof message, "%d of %d primes done, %d curves", pkntnr, pkntlim2, numcurves);
            ckfpb = d_opencheck(message); /* takes care of message, stdin, status */
            /* write the grain's current state information to ckfpb */
            fprintf(ckfpb, "%s\n%x\n%ld\n", outhex(n, o1), (unsigned)powersize, fp != NULL ? ftell(fp) : 0L);
            fprintf(ckfpb, "%d\n%d\n%d\n", pkntnr, pkntlim2, numcurves);
            for (i = 0; i < numcurves; i++)
                fprintf(ckfpb, "%s\n%s\n%s\n", outhex(x[i], o1), outhex(y[i], o2), outhex(a[i], o3));
            d_closecheck(ckfpb); /* checks for file errors and renames checkpoint */
        }
        unsigned long prime = nextprime(fp);
        if (prime == 0) refuse("the file of primes is too short");
        found = step(prime, powersize, &numcurves);
        pkntnr++;
    }
    if (!found) printf("no factor with %d primes\n", pkntnr);
    return 0;
}
