/* lucas_lehmer: whether 2^P - 1 is prime, for an odd prime P. Standard input: "P K S", where S (hexadecimal) is the
 * K-th number of s -> s^2 - 2 (mod 2^P - 1), starting with 4 ("P 0 4"). Standard output: "prime", or "composite" and
 * the last 64 bits of the last number. Each step depends on the previous one, so the work cannot be divided, only
 * moved. It can be interrupted at each step. Exit status: 0, or 2 for invalid input. */
#include <stdio.h>

#include <gmp.h>

#include "grainlib.h"

enum { exponent_max = 100000000 };

static void take_checkpoint(unsigned long p, unsigned long k, const mpz_t s)
{
    char message[60];
    snprintf(message, sizeof message, "step %lu of %lu", k, p - 2);
    FILE *state = d_opencheck(message);
    gmp_fprintf(state, "%lu %lu %Zx\n", p, k, s);
    d_closecheck(state);
}

/* s^2 - 2 modulo 2^p - 1: adds the bits from p on to those below. */
static void step(mpz_t s, mpz_t high, unsigned long p, const mpz_t modulus)
{
    mpz_mul(s, s, s);
    mpz_sub_ui(s, s, 2);
    if (mpz_sgn(s) < 0) mpz_add(s, s, modulus);
    mpz_tdiv_q_2exp(high, s, p);
    mpz_tdiv_r_2exp(s, s, p);
    mpz_add(s, s, high);
    if (mpz_cmp(s, modulus) >= 0) mpz_sub(s, s, modulus);
}

int main(void)
{
    unsigned long p, k;
    mpz_t s, high, modulus;
    mpz_inits(s, high, modulus, NULL);
    d_handler();
    if (scanf("%lu %lu", &p, &k) != 2 || p < 3 || p > exponent_max || k > p - 2 || mpz_inp_str(s, stdin, 16) == 0) {
        fputs("lucas_lehmer: expected P K S\n", stderr);
        return 2;
    }
    mpz_setbit(modulus, p);
    mpz_sub_ui(modulus, modulus, 1);
    while (k < p - 2) {
        step(s, high, p, modulus);
        k++;
        if (k < p - 2 && d_time_to_ckpt()) take_checkpoint(p, k, s);
    }
    if (mpz_sgn(s) == 0) {
        puts("prime");
    } else {
        mpz_tdiv_r_2exp(s, s, 64);
        gmp_printf("composite %016ZX\n", s);
    }
    mpz_clears(s, high, modulus, NULL);
    return 0;
}
