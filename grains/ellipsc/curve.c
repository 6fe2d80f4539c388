/* The arithmetic of one curve, with libecm. */
#include "ellipsc.h"

#include <ecm.h>

void curve_init(struct curve *curve)
{
    mpz_inits(curve->a, curve->x, NULL);
    curve->done = 1;
}

void curve_clear(struct curve *curve)
{
    mpz_clears(curve->a, curve->x, NULL);
}

static enum outcome judge(const mpz_t n, const mpz_t factor)
{
    return mpz_cmp_ui(factor, 1) > 0 && mpz_cmp(factor, n) < 0 ? OUTCOME_FACTOR : OUTCOME_USELESS;
}

enum outcome curve_begin(struct curve *curve, const mpz_t n, uint64_t sigma, mpz_t factor)
{
    /* u = sigma^2 - 5, v = 4 sigma, A = (v-u)^3 (3u+v) / (4 u^3 v) - 2, x = (u/v)^3 */
    mpz_t u, v, t;
    mpz_inits(u, v, t, NULL);
    mpz_set_ui(v, (unsigned long)(sigma >> 32));
    mpz_mul_2exp(v, v, 32);
    mpz_add_ui(v, v, (unsigned long)(sigma & 0xFFFFFFFFu));
    mpz_mul(u, v, v);
    mpz_sub_ui(u, u, 5);
    mpz_mul_2exp(v, v, 2);
    enum outcome outcome = OUTCOME_NONE;
    mpz_powm_ui(t, u, 3, n);
    mpz_mul(t, t, v);
    mpz_mul_2exp(t, t, 2);
    mpz_gcd(factor, t, n);
    if (mpz_cmp_ui(factor, 1) != 0) {
        outcome = judge(n, factor);
    } else {
        mpz_invert(t, t, n);
        mpz_sub(curve->a, v, u);
        mpz_powm_ui(curve->a, curve->a, 3, n);
        mpz_mul(curve->a, curve->a, t);
        mpz_mul_ui(t, u, 3);
        mpz_add(t, t, v);
        mpz_mul(curve->a, curve->a, t);
        mpz_sub_ui(curve->a, curve->a, 2);
        mpz_mod(curve->a, curve->a, n);
        mpz_invert(t, v, n); /* exists, because v divides an invertible number */
        mpz_mul(t, t, u);
        mpz_powm_ui(curve->x, t, 3, n);
        curve->done = 1;
    }
    mpz_clears(u, v, t, NULL);
    return outcome;
}

/* One call of libecm, from the present state of the curve. It is resumed by the coefficient A: given a sigma,
 * libecm 7.0.5 recomputes the start point, ignores x and silently misses factors. */
static enum outcome call(struct curve *curve, const mpz_t n, double b1, double b2, mpz_t factor)
{
    ecm_params params;
    ecm_init(params);
    params->param = ECM_PARAM_SUYAMA;
    params->sigma_is_A = 1;
    mpz_set(params->sigma, curve->a);
    mpz_set(params->x, curve->x);
    params->B1done = curve->done;
    mpz_set_d(params->B2, b2);
    mpz_t number;
    mpz_init_set(number, n);
    int found = ecm_factor(factor, number, b1, params);
    enum outcome outcome = OUTCOME_NONE;
    if (found < 0) outcome = OUTCOME_ERROR;
    else if (found > 0) outcome = judge(n, factor);
    else mpz_set(curve->x, params->x);
    mpz_clear(number);
    ecm_clear(params);
    return outcome;
}

enum outcome curve_stage1(struct curve *curve, const mpz_t n, double limit, mpz_t factor)
{
    enum outcome outcome = call(curve, n, limit, 0, factor); /* B2 = 0: no stage 2 */
    curve->done = limit;
    return outcome;
}

enum outcome curve_stage2(struct curve *curve, const mpz_t n, double b2, mpz_t factor)
{
    if (b2 >= 0 && b2 <= curve->done) return OUTCOME_NONE;
    return call(curve, n, curve->done, b2 < 0 ? ECM_DEFAULT_B2 : b2, factor);
}

double curve_slice(const mpz_t n)
{
    /* 1e5 takes 80 ms for a number of 310 bits; the time grows with the square of the length. */
    uint64_t bits = mpz_sizeinbase(n, 2);
    if (bits <= 320) return 100000;
    uint64_t slice = UINT64_C(100000) * 320 * 320 / (bits * bits);
    return slice < 500 ? 500 : (double)slice;
}
