/* primes_between: counts the primes p with FROM <= p < TO. Standard input: "FROM TO COUNT", where COUNT is the
 * count for numbers below FROM (initially 0); standard output: the count. It can be interrupted
 * between segments. Exit status: 0, or 2 for invalid input. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grainlib.h"

/* Number of odd numbers per segment: its flags fit the processor's cache. */
enum { segment_odds = 1 << 18 };
#define LAST UINT64_C(1000000000000000)

static uint32_t *base; /* odd primes up to the root of TO */
static size_t base_count;

static uint64_t root_of(uint64_t n)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 25; bit != 0; bit >>= 1)
        if ((root + bit) * (root + bit) <= n) root += bit;
    return root;
}

static void find_base(uint64_t to)
{
    uint32_t root = (uint32_t)root_of(to);
    unsigned char *composite = calloc(root + 1u, 1);
    base = malloc((root / 2 + 1u) * sizeof *base);
    if (composite == NULL || base == NULL) abort();
    for (uint32_t p = 3; p <= root; p += 2) {
        if (composite[p]) continue;
        base[base_count++] = p;
        for (uint64_t multiple = (uint64_t)p * p; multiple <= root; multiple += 2u * p) composite[multiple] = 1;
    }
    free(composite);
}

/* Counts the primes among the odd numbers first, first + 2, ..., `odds` of them. */
static uint64_t count_segment(uint64_t first, size_t odds)
{
    static unsigned char composite[segment_odds];
    memset(composite, 0, odds);
    uint64_t last = first + 2 * (odds - 1), count = 0;
    for (size_t i = 0; i < base_count && (uint64_t)base[i] * base[i] <= last; i++) {
        uint64_t p = base[i], from = p * p;
        if (from < first) {
            from = (first + p - 1) / p * p;
            from += from % 2 == 0 ? p : 0;
        }
        for (uint64_t at = (from - first) / 2; at < odds; at += p) composite[at] = 1;
    }
    for (size_t i = 0; i < odds; i++) count += !composite[i];
    return first == 1 ? count - 1 : count; /* 1 is not a prime */
}

static void take_checkpoint(uint64_t from, uint64_t to, uint64_t count)
{
    char message[80];
    snprintf(message, sizeof message, "at %" PRIu64 " of %" PRIu64, from, to);
    FILE *state = d_opencheck(message);
    fprintf(state, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", from, to, count);
    d_closecheck(state);
}

int main(void)
{
    uint64_t from, to, count;
    d_handler();
    if (scanf("%" SCNu64 " %" SCNu64 " %" SCNu64, &from, &to, &count) != 3 || from > to || to > LAST) {
        fputs("primes_between: expected FROM TO COUNT with FROM <= TO <= 10^15\n", stderr);
        return 2;
    }
    find_base(to);
    if (from <= 2 && to > 2) count++;
    from |= 1;
    while (from < to) {
        uint64_t odds = (to - from + 1) / 2;
        if (odds > segment_odds) odds = segment_odds;
        count += count_segment(from, (size_t)odds);
        from += 2 * odds;
        if (from < to && d_time_to_ckpt()) take_checkpoint(from, to, count);
    }
    printf("%" PRIu64 "\n", count);
    return 0;
}
