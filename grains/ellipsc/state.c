/* The state of the grain as text, both for submission and in a checkpoint:
 *
 *   ellipsc 1                 version of this format
 *   n 8051                    the number; decimal, or hexadecimal after 0x
 *   b1 2000
 *   b2 147396                 or: b2 default
 *   sigma 6                   of the first curve
 *   curves 10                 number of sigmas to try
 *   next 3                    number of finished curves (default 0)
 *   curve 1f3a 0b7 1000       curve `next` is in progress: A and x in hexadecimal, progress of stage 1
 *   end
 */
#include "ellipsc.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The longest line is "curve" with two numbers below n. */
enum { line_bytes = 100000, n_bits_max = 160000 };
#define NUMBER_MAX UINT64_C(1000000000000000) /* bounds and counts: exact in a double */

void state_init(struct state *state)
{
    memset(state, 0, sizeof *state);
    mpz_init(state->n);
    curve_init(&state->curve);
}

void state_clear(struct state *state)
{
    mpz_clear(state->n);
    curve_clear(&state->curve);
}

static int parse_count(const char *text, uint64_t max, uint64_t *value)
{
    if (!isdigit((unsigned char)text[0])) return 0;
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || number > max) return 0;
    *value = number;
    return 1;
}

static int parse_bound(const char *text, double *value)
{
    uint64_t number = 0;
    if (!parse_count(text, NUMBER_MAX, &number)) return 0;
    *value = (double)number;
    return 1;
}

static int parse_hex(const char *text, mpz_t value)
{
    return text[0] != '\0' && text[strspn(text, "0123456789abcdefABCDEF")] == '\0' && mpz_set_str(value, text, 16) == 0;
}

static int parse_n(const char *text, mpz_t n)
{
    int good = 0;
    if (strncmp(text, "0x", 2) == 0) good = parse_hex(text + 2, n);
    else good = text[0] != '\0' && text[strspn(text, "0123456789")] == '\0' && mpz_set_str(n, text, 10) == 0;
    return good && mpz_cmp_ui(n, 1) > 0 && mpz_sizeinbase(n, 2) <= n_bits_max;
}

static int parse_curve(char *text, struct curve *curve)
{
    char *save = NULL;
    char *a = strtok_r(text, " ", &save), *x = strtok_r(NULL, " ", &save);
    char *done = strtok_r(NULL, " ", &save);
    return done != NULL && strtok_r(NULL, " ", &save) == NULL && parse_hex(a, curve->a) && parse_hex(x, curve->x) &&
           parse_bound(done, &curve->done);
}

enum field { VERSION, N, B1, B2, SIGMA, CURVES, NEXT, CURVE, FIELDS };
static const char *const names[FIELDS] = {"ellipsc", "n", "b1", "b2", "sigma", "curves", "next", "curve"};

static int parse_field(struct state *state, enum field field, char *value)
{
    uint64_t version = 0;
    switch (field) {
    case VERSION: return parse_count(value, 1, &version) && version == 1;
    case N: return parse_n(value, state->n);
    case B1: return parse_bound(value, &state->b1);
    case B2: state->b2 = -1; return strcmp(value, "default") == 0 || parse_bound(value, &state->b2);
    case SIGMA:
        /* Below 6 there is no curve, or no point of infinite order. */
        return parse_count(value, UINT64_MAX / 2, &state->sigma) && state->sigma >= 6;
    case CURVES: return parse_count(value, NUMBER_MAX, &state->curves);
    case NEXT: return parse_count(value, NUMBER_MAX, &state->next);
    case CURVE: state->under_way = 1; return parse_curve(value, &state->curve);
    default: return 0;
    }
}

static int wrong(unsigned line, const char *what)
{
    fprintf(stderr, "ellipsc: line %u of the state: %s\n", line, what);
    return -1;
}

static const char *check(const struct state *state, unsigned seen)
{
    for (int field = VERSION; field <= CURVES; field++)
        if (!(seen & (1u << field))) return "\"end\" before all of ellipsc, n, b1, b2, sigma and curves were given";
    if (state->b1 < 2) return "b1 is below 2";
    if (state->next > state->curves || (state->under_way && state->next == state->curves))
        return "next is greater than curves";
    if (state->under_way && (mpz_cmp(state->curve.a, state->n) >= 0 || mpz_cmp(state->curve.x, state->n) >= 0 ||
                             state->curve.done > state->b1 || state->curve.done < 1))
        return "the curve in progress does not match n and b1";
    return NULL;
}

int state_read(struct state *state, FILE *in)
{
    static char line[line_bytes];
    unsigned seen = 0;
    for (unsigned number = 1;; number++) {
        if (fgets(line, sizeof line, in) == NULL) return wrong(number, "the input ends before \"end\"");
        size_t length = strlen(line);
        if (length == 0 || line[length - 1] != '\n') return wrong(number, "too long, or truncated");
        line[length - 1] = '\0';
        if (strcmp(line, "end") == 0) {
            const char *error = check(state, seen);
            return error == NULL ? 0 : wrong(number, error);
        }
        char *value = strchr(line, ' ');
        if (value == NULL) return wrong(number, "not a name and a value");
        *value++ = '\0';
        int field = 0;
        while (field < FIELDS && strcmp(line, names[field]) != 0) field++;
        if (field == FIELDS) return wrong(number, "an unknown name");
        if (seen == 0 && field != VERSION) return wrong(number, "does not begin with \"ellipsc 1\"");
        if (seen & (1u << field)) return wrong(number, "given twice");
        seen |= 1u << field;
        if (!parse_field(state, (enum field)field, value)) return wrong(number, "the value is invalid or out of range");
    }
}

void state_write(const struct state *state, FILE *out)
{
    fprintf(out, "ellipsc 1\n");
    gmp_fprintf(out, "n %Zd\n", state->n);
    fprintf(out, "b1 %.0f\n", state->b1);
    if (state->b2 < 0) fprintf(out, "b2 default\n");
    else fprintf(out, "b2 %.0f\n", state->b2);
    fprintf(out, "sigma %" PRIu64 "\ncurves %" PRIu64 "\nnext %" PRIu64 "\n", state->sigma, state->curves, state->next);
    if (state->under_way) gmp_fprintf(out, "curve %Zx %Zx %.0f\n", state->curve.a, state->curve.x, state->curve.done);
    fprintf(out, "end\n");
}
