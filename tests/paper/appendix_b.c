/* The paper's Appendix B made whole: find_factor.c of 1990, a control program that factors the
 * integers on its standard input and that is restarted by running it again. Compare
 * control-examples/find_factor.
 *
 * What differs from the listing, and why:
 * - Grain numbers run on over the four loops. In the listing each loop began with 0 again; today a
 *   grain number that is in use with other parameters is an error (D_E_GRAIN_DIFFERS), as the
 *   paper's 3.2 says.
 * - d_gwait is called until a grain tells a factor or all have reported, and it has Figure 1's
 *   order of parameters.
 * - The state of a grain has Appendix A's sixth item, the position in the read-only file.
 * - Integers are read in decimal, or in hexadecimal after 0x. Limits come from the command line:
 *     appendix_b [-g GRAIN] [-l PKNTLIM] [-c CLASS] [-s SESSION] [-d DIVISOR] < list
 *   GRAIN: path of appendix_a (default: $APPENDIX_A, else beside this program). CLASS: instead of
 *   the host classes of 1990, which no private pool has. SESSION: the number before the first.
 *   DIVISOR: of the numbers of grains of the four loops, for small pools. */
#include "dcs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gmp.h>

/* the grain host class definitions that the program uses */
#define SEQ 0x00000002   /* department Sequent Balance */
#define UTEKC 0x00000080 /* department Tektronix utek lab clients */
#define SUN35 0x00000200 /* campus Sun 3/50's */
#define SUN36 0x00000400 /* campus Sun 3/60's */
#define SUN37 0x00000800 /* campus Sun 3/260's, 3/280's */
#define UTEKE 0x00002000 /* Tektronix uteks in ECE */
#define NEXTE 0x00008000 /* NEXT machines in ECE */
#define NEXTC 0x00010000 /* department NEXT machines */

#define LENPROG "appendix_a"
#define POWERSIZE 0x1000
#define PKNTLIM2 50000
#define SEEDVALUE 596561004
#define SIZE 256
#define MAXSTRING 100000
#define DIGITS 600

typedef mpz_t MULTIPRECISION;

static char state[SIZE];
static int session;
static time_t tloc;

static char *outhex(const MULTIPRECISION number, char *text) { return mpz_get_str(text, 16, number); }

static void randomnumber(MULTIPRECISION number, const MULTIPRECISION n) {
    mpz_set_ui(number, 0);
    for (size_t bits = 0; bits < mpz_sizeinbase(n, 2) + 31; bits += 31) {
        mpz_mul_2exp(number, number, 31);
        mpz_add_ui(number, number, (unsigned long)random());
    }
    mpz_mod(number, number, n);
}

/* A point and a coefficient decide the curve: b = y^2 - x^3 - a x, discriminant 4 a^3 + 27 b^2. */
static void selectcurve(MULTIPRECISION x, MULTIPRECISION y, MULTIPRECISION a, const MULTIPRECISION n, MULTIPRECISION b,
                        MULTIPRECISION d) {
    do {
        randomnumber(x, n);
        randomnumber(y, n);
        randomnumber(a, n);
        mpz_mul(b, x, x);
        mpz_add(b, b, a);
        mpz_mul(b, b, x);
        mpz_mul(d, y, y);
        mpz_sub(b, d, b);
        mpz_mod(b, b, n);
        mpz_powm_ui(d, a, 3, n);
        mpz_mul_2exp(d, d, 2);
        mpz_t square;
        mpz_init(square);
        mpz_mul(square, b, b);
        mpz_addmul_ui(d, square, 27);
        mpz_clear(square);
        mpz_mod(d, d, n);
    } while (mpz_sgn(d) == 0);
}

static void makecurves(const MULTIPRECISION n, int powersize, int pkntlim, int numcurves, char *buffer) {
    char o1[DIGITS], o2[DIGITS], o3[DIGITS], o4[DIGITS], o5[DIGITS], o6[DIGITS];
    MULTIPRECISION x, y, a, b, d;
    int i, string_index;

    mpz_inits(x, y, a, b, d, NULL);
    sprintf(buffer, "%s\n%x\n%ld\n%d\n%d\n%d\n", outhex(n, o1), (unsigned)powersize, 0L, 0, pkntlim, numcurves);
    string_index = (int)strlen(buffer);
    for (i = 0; i < numcurves; i++) {
        selectcurve(x, y, a, n, b, d);
        printf("curve %d\nx=%s\ny=%s\na=%s\nn=%s\nb=%s\nd=%s\n", i + 1, outhex(x, o1), outhex(y, o2), outhex(a, o3),
               outhex(n, o4), outhex(b, o5), outhex(d, o6));
        sprintf(&buffer[string_index], "%s\n%s\n%s\n", outhex(x, o1), outhex(y, o2), outhex(a, o3));
        string_index += (int)strlen(&buffer[string_index]);
    }
    mpz_clears(x, y, a, b, d, NULL);
}

static _Noreturn void fail(const char *call, int status) {
    fprintf(stderr, "Error in %s, session %d - %s: %s %s, %s", call, session, d_errorname(status), d_strerror(status),
            d_errortext(), ctime(&tloc));
    exit(1);
}

static void read_number(const char *num, MULTIPRECISION n) {
    int hexadecimal = strncmp(num, "0x", 2) == 0;
    if (mpz_set_str(n, hexadecimal ? num + 2 : num, hexadecimal ? 16 : 10) != 0 || mpz_cmp_ui(n, 3) <= 0 ||
        mpz_sizeinbase(n, 16) > DIGITS - 100) {
        fprintf(stderr, "appendix_b: %.50s is not an integer from 4 up, or too large\n", num);
        exit(2);
    }
}

/* the four loops: a number of grains with a number of curves for some host classes */
struct loop {
    int grains, curves;
    unsigned classes;
};

static int submit(const MULTIPRECISION n, const char *grain, int pkntlim, unsigned any_class, int divisor) {
    enum { smallcurves = 3, mediumcurves = 4, largecurves = 5 };
    enum { lim_utek = 15, lim_sun35 = 10, lim_sun36 = 4, lim_sun37 = 3, lim_seq = 10 };
    static const struct loop loops[] = {
        {lim_seq, smallcurves, SEQ},
        {lim_utek + lim_sun35, smallcurves, UTEKE | UTEKC | SUN35},
        {lim_sun36, mediumcurves, SUN36 | NEXTE | NEXTC},
        {lim_sun37, largecurves, SUN37},
    };
    static char bigbuffer[MAXSTRING];
    char *arg_vector[] = {(char *)grain, NULL}, *env_vector[] = {NULL};
    int grain_num = 0;
    for (int i = 0; i < 4; i++) {
        int last = grain_num + (loops[i].grains + divisor - 1) / divisor;
        for (; grain_num < last; grain_num++) {
            makecurves(n, POWERSIZE, pkntlim, loops[i].curves, bigbuffer);
            int status = d_gexec(session, grain_num, arg_vector, env_vector, bigbuffer,
                                 any_class != UINT_MAX ? any_class : loops[i].classes, 0, 0, 5);
            if (status != NO_ERROR) fail("d_gexec", status);
        }
    }
    return grain_num;
}

static void gather(int grains) {
    int grain_number, grains_completed, grains_sent, grain_termsig, grain_retcode, status;
    int found = 0;
    size_t grain_outlen, grain_errlen;
    struct rusage g_rusage;
    char *output, *error;

    for (int i = 0; i < grains && !found; i++) {
        if ((status = d_gwait(BLOCK, session, &grain_number, &grains_completed, &grains_sent, &grain_termsig,
                              &grain_retcode, &g_rusage, &grain_outlen, &output, &grain_errlen, &error)) == NOERROR) {
            printf("Grain %d, session %d, sig %d, retcode %d, comp %d, sent %d\n", grain_number, session, grain_termsig,
                   grain_retcode, grains_completed, grains_sent);
            printf("output -\n%s\nstandard error -\n%s\n", output, error);
            fflush(stdout);
            found = strncmp(output, "factor ", 7) == 0;
        } else {
            /* If the system is down, terminate the program; a rerun goes on. */
            if (errno == ECONNREFUSED) fprintf(stderr, "The system is down; run this program again later.\n");
            fail("d_gwait", status);
        }
    }
}

static const char *default_grain(void) {
    static char path[PATH_MAX + sizeof LENPROG];
    if (getenv("APPENDIX_A") != NULL) return getenv("APPENDIX_A");
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    if (length <= 0) return LENPROG;
    path[length] = '\0';
    strcpy(strrchr(path, '/') + 1, LENPROG);
    return path;
}

int main(int argc, char **argv) {
    const char *grain = default_grain();
    int pkntlim = PKNTLIM2, divisor = 1, option, status;
    unsigned any_class = UINT_MAX;
    char num[DIGITS];
    MULTIPRECISION n;

    while ((option = getopt(argc, argv, "g:l:c:s:d:")) != -1) {
        switch (option) {
        case 'g': grain = optarg; break;
        case 'l': pkntlim = atoi(optarg); break;
        case 'c': any_class = (unsigned)strtoul(optarg, NULL, 0); break;
        case 's': session = atoi(optarg); break;
        case 'd': divisor = atoi(optarg) > 0 ? atoi(optarg) : 1; break;
        default: return 2;
        }
    }
    tloc = time(NULL);
    mpz_init(n);

    /* get authorization token and pass this program's name "ellips1" to scheduler */
    if ((status = d_get_auth("ellips1")) != NO_ERROR) fail("d_get_auth", status);
    initstate(SEEDVALUE, state, SIZE);

    while (scanf("%599s", num) == 1) {
        read_number(num, n);
        session++;
        if ((status = d_resume_ses(session, TRUE)) != NO_ERROR) fail("d_resume_ses", status);
        gather(submit(n, grain, pkntlim, any_class, divisor));
        if ((status = d_close_ses(session)) != NO_ERROR) fail("d_close_ses", status);
    }
    mpz_clear(n);
    return 0;
}
