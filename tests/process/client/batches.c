/* Batch calls from C. `batches run SESSION COUNT SEED`: submits grains 0..COUNT-1, each printing its number, and takes
 * their results, in batches of sizes that SEED draws; a line "INDEX GRAIN CODE OUTPUT" for each result.
 * `batches errors SESSION`: every error of the batch calls that a running pool gives, in turn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dcs.h"

enum { most = 4096, at_once = 64 };
static struct d_grain_order orders[most];
static struct d_result results[at_once];
static char numbers[most][12];
static char *argvs[most][4];

static void need(int got, int wanted, const char *what) {
    if (got == wanted) return;
    fprintf(stderr, "batches: %s: %s where %s was due: %s\n", what, d_errorname(got), d_errorname(wanted),
            d_errortext());
    exit(1);
}

static void need_true(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "batches: %s: not so; last error: %s\n", what, d_errortext());
    exit(1);
}

static void make_orders(int count) {
    for (int i = 0; i < count; ++i) {
        snprintf(numbers[i], sizeof numbers[i], "%d", i);
        argvs[i][0] = "/bin/echo";
        argvs[i][1] = "-n";
        argvs[i][2] = numbers[i];
        d_grain_order_init(&orders[i], i);
        orders[i].grain.gargv = argvs[i];
    }
}

static void submit_all(int session, int count) {
    for (int done = 0; done < count;) {
        int n = 1 + rand() % 100;
        if (n > count - done) n = count - done;
        size_t taken = 0, refused = 0;
        need(d_gexec_many(session, orders + done, (size_t)n, &taken, &refused), NO_ERROR, "d_gexec_many");
        need_true(taken == (size_t)n && refused == (size_t)n, "all of a batch was taken");
        done += n;
    }
}

static void run(int session, int count, unsigned seed) {
    srand(seed);
    make_orders(count);
    d_result_init(results, at_once);
    need(d_resume_ses(session, TRUE), NO_ERROR, "d_resume_ses");
    submit_all(session, count);
    for (int taken = 0; taken < count;) {
        int n = 0;
        need(d_gwait_many(D_BLOCK, session, 1 + rand() % at_once, results, &n), NO_ERROR, "d_gwait_many");
        for (int i = 0; i < n; ++i)
            printf("%d %d %d %s\n", results[i].result_index, results[i].grain_num, results[i].retcode,
                   results[i].output);
        fflush(stdout);
        taken += n;
    }
    need(d_gwait_many(D_BLOCK, session, 1, results, &(int){0}), D_E_NOTHING_LEFT, "a wait beyond the last");
}

static void expect(int session, size_t count, int error, size_t taken_due, size_t refused_due, const char *text) {
    size_t taken = 77, refused = 77;
    need(d_gexec_many(session, orders, count, &taken, &refused), error, text);
    need_true(taken == taken_due && refused == refused_due && strstr(d_errortext(), text), text);
}

static void errors(int session) {
    int n = 5;
    make_orders(10);
    d_result_init(results, at_once);
    expect(session, 3, D_E_SESSION_UNKNOWN, 0, 3, "no session");
    need(d_open_ses(session), NO_ERROR, "d_open_ses");
    need(d_gwait_many(D_NO_BLOCK, session, 5, results, &n), D_E_NOTHING_LEFT, "an empty session");
    expect(session, 3, NO_ERROR, 3, 3, "");
    expect(session, 10, D_E_GRAIN_EXISTS, 0, 0, "exists");
    orders[5].grain.host_class = 1u << 31; /* no host is of this class */
    need(d_gexec_many(session, orders + 5, 1, NULL, NULL), NO_ERROR, "a grain without a waiter");
    need(d_resume_ses(session, TRUE), NO_ERROR, "d_resume_ses");
    expect(session, 4, NO_ERROR, 4, 4, "");
    argvs[2][2] = "another";
    expect(session, 10, D_E_GRAIN_DIFFERS, 0, 2, "argv[2]: recorded \"2\", now \"another\"");
    argvs[2][2] = numbers[2];
    orders[7].grain.notice = -1;
    expect(session, 10, D_E_INVALID, 0, 7, "notice is -1");
    orders[7].grain.notice = 0;
    orders[8].grain_num = 3;
    expect(session, 10, D_E_INVALID, 0, 8, "twice");
    orders[8].grain_num = 8;
    for (int taken = 0; taken < 4; taken += n)
        need(d_gwait_many(D_BLOCK, session, 9, results, &n), NO_ERROR, "four results");
    need(d_gwait_many(D_BLOCK, session, 9, results, &n), D_E_CANNOT_RUN, "what remains runs nowhere");
    need_true(n == 0, "no results with an error");
    argvs[9][0] = "/bin/sleep", argvs[9][1] = "1000", argvs[9][2] = NULL;
    need(d_gexec_many(session, orders + 9, 1, NULL, NULL), NO_ERROR, "a long one");
    need(d_gwait_many(D_NO_BLOCK, session, 9, results, &n), D_E_NOTHING_YET, "nothing has finished");
    need(d_close_ses(session), NO_ERROR, "d_close_ses");
    need(d_gwait_many(D_BLOCK, session, 9, results, &n), D_E_SESSION_CLOSED, "a closed session");
    expect(session, 4, D_E_SESSION_CLOSED, 0, 4, "closed");
    need(d_resume_ses(session, TRUE), NO_ERROR, "the replay");
    expect(session, 4, NO_ERROR, 4, 4, "");
    expect(session, 8, D_E_REPLAY_END, 0, 4, "grain 4");
    for (int taken = 0; taken < 4; taken += n)
        need(d_gwait_many(D_BLOCK, session, 9, results, &n), NO_ERROR, "four results again");
    need(d_gwait_many(D_BLOCK, session, 9, results, &n), D_E_REPLAY_END, "the end of the replay");
    printf("every error came\n");
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    need(d_get_auth("batches"), NO_ERROR, "d_get_auth");
    if (strcmp(argv[1], "errors") == 0) errors(atoi(argv[2]));
    else if (argc == 5) run(atoi(argv[2]), atoi(argv[3]), (unsigned)atoi(argv[4]));
    else return 2;
    return 0;
}
