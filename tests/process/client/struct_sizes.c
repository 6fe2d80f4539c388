/* A control program that is compiled against dcs.h as it is, against one whose structs end earlier (SHORTER) and
 * against one whose structs go on (LONGER), and that must say the same with the library as it is. See struct_sizes.py.
 *   struct_sizes SESSION DIRECTORY      of the pool */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "dcs.h"
#include "dcs_lock.h"

enum { some = 4, guard = 64 };

static void must(int error, const char *what) {
    if (error == D_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, d_errorname(error), d_errortext());
    exit(1);
}

static void expect(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

#ifdef LONGER
#define NOTHING_LATER(row) \
    expect((row)->later == 0 && (row)->later_text == NULL, "fields of " #row " that the library has not")
#else
#define NOTHING_LATER(row) (void)(row)
#endif

/* Behind each struct that the library fills there are bytes that are not its own. */
static void mark(char *bytes) { memset(bytes, 0x5a, guard); }

static void unmarked(const char *bytes, const char *what) {
    for (int i = 0; i < guard; i++) expect(bytes[i] == 0x5a, what);
}

static void initialised(void) {
    struct {
        struct d_grain grain;
        char behind[guard];
    } one;
    struct {
        struct d_host_change change;
        char behind[guard];
    } other;
    mark(one.behind), mark(other.behind);
    d_grain_init(&one.grain);
    d_host_change_init(&other.change);
    unmarked(one.behind, "d_grain_init keeps to the struct"), unmarked(other.behind, "so does d_host_change_init");
    expect(one.grain.attempts == 3 && one.grain.struct_size == sizeof one.grain, "the defaults of a grain");
    NOTHING_LATER(&one.grain);
    NOTHING_LATER(&other.change);
}

static void submit(int session) {
    static struct d_grain_order orders[some];
    static char texts[some][80];
    static char *argvs[some][4];
    const struct d_file files[2] = {{.struct_size = sizeof *files, .name = "a", .path = "/etc/hostname"},
                                    {.struct_size = sizeof *files, .name = "b", .path = "/etc/passwd"}};
    for (int i = 0; i < some; i++) {
        snprintf(texts[i], sizeof texts[i], "cat; head -c %d /dev/zero; exit %d", 100 * i, i);
        argvs[i][0] = "/bin/sh", argvs[i][1] = "-c", argvs[i][2] = texts[i];
        d_grain_order_init(&orders[i], i);
        orders[i].grain.gargv = argvs[i];
        orders[i].grain.input = "in";
        orders[i].grain.input_length = 2;
        orders[i].grain.attempts = 1;
        orders[i].grain.label = "a label";
    }
    size_t taken = 0;
    must(d_gexec_many(session, orders, some, &taken, NULL), "d_gexec_many");
    expect(taken == some, "all orders were taken");
    struct d_grain last;
    char *argv[] = {"/bin/sh", "-c", "cmp a /etc/hostname && cmp b /etc/passwd && test ! -x b", NULL};
    d_grain_init(&last);
    last.gargv = argv;
    last.files = files;
    last.file_count = 2;
    last.attempts = 1;
    must(d_gexec_grain(session, some, &last), "d_gexec_grain");
#ifdef LONGER
    last.later = 1;
    expect(d_gexec_grain(session, some + 1, &last) == D_E_INVALID && strstr(d_errortext(), "newer library"),
           "what the library cannot do is refused");
    last.later = 0;
#endif
    last.struct_size = 0;
    expect(d_gexec_grain(session, some + 1, &last) == D_E_INVALID, "a grain without a size is refused");
    orders[0].struct_size = 3;
    expect(d_gexec_many(session, orders, 1, NULL, NULL) == D_E_INVALID, "an order of no such size is refused");
}

static void take(int session) {
    static struct {
        struct d_result results[some + 1];
        char behind[guard];
    } got;
    int seen[some + 1] = {0};
    d_result_init(got.results, some + 1);
    mark(got.behind);
    for (int left = some + 1; left > 0;) {
        int count = 0;
        must(d_gwait_many(D_BLOCK, session, left, got.results, &count), "d_gwait_many");
        for (int i = 0; i < count; i++) {
            const struct d_result *r = &got.results[i];
            expect(r->struct_size == sizeof *r && r->termsig == 0, "a result's beginning");
            expect(r->retcode == (r->grain_num < some ? r->grain_num : 0), "its exit code");
            expect(r->outlen == (size_t)(r->grain_num < some ? 2 + 100 * r->grain_num : 0), "its length");
            NOTHING_LATER(r);
            seen[r->grain_num]++;
        }
        left -= count;
        unmarked(got.behind, "results keep to their array");
    }
    for (int i = 0; i <= some; i++) expect(seen[i] == 1, "each result once");
    struct {
        struct d_result result;
        char behind[guard];
    } one;
    mark(one.behind);
    d_result_init(&one.result, 1);
    must(d_resume_ses(session, 1), "d_resume_ses");
    FILE *out = NULL;
    must(d_pool_gwait_streams(NULL, D_BLOCK, session, &one.result, &out, NULL), "d_pool_gwait_streams");
    fclose(out);
    must(d_gwait_result(D_BLOCK, session, &one.result), "d_gwait_result");
    unmarked(one.behind, "one result keeps to its struct");
    one.result.struct_size = 1;
    expect(d_gwait_result(D_BLOCK, session, &one.result) == D_E_INVALID, "a result without a size is refused");
}

static void ask(int session) {
    struct d_info *info = NULL;
    must(d_query(D_Q_HOSTS, NULL, -1, -1, &info), "d_query of hosts");
    expect(info->struct_size == sizeof *info && info->host_count == 2, "two hosts");
    NOTHING_LATER(info);
    for (size_t i = 0; i < info->host_count; i++) {
        printf("%s %s %d slots\n", info->hosts[i].name, info->hosts[i].state, info->hosts[i].slots);
        expect(info->hosts[i].struct_size == sizeof info->hosts[i], "a host's size");
        NOTHING_LATER(&info->hosts[i]);
    }
    d_query_free(info);
    must(d_query(D_Q_GRAINS, NULL, session, -1, &info), "d_query of grains");
    for (size_t i = 0; i < info->grain_count; i++) {
        const struct d_grain_row *row = &info->grains[i];
        printf("%d %s %s %d %d %llu\n", row->grain, row->state, row->user, row->exit_code, row->attempts,
               (unsigned long long)row->out_length);
        NOTHING_LATER(row);
    }
    d_query_free(info);
    must(d_query(D_Q_GRAIN, NULL, session, 1, &info), "d_query of a grain");
    printf("%s, %s\n", info->grains[0].label, info->grains[0].argv[2]);
    NOTHING_LATER(&info->grains[0]);
    d_query_free(info);
    must(d_query(D_Q_SESSIONS, NULL, -1, -1, &info), "d_query of sessions");
    for (size_t i = 0; i < info->session_count; i++) {
        if (info->sessions[i].session == session)
            printf("%s %s %d\n", info->sessions[i].ident, info->sessions[i].state, info->sessions[i].finished);
        NOTHING_LATER(&info->sessions[i]);
    }
    d_query_free(info);
}

static void explain(int session) {
    struct d_explanation *why = NULL;
    struct d_grain grain;
    char *argv[] = {"/bin/true", NULL};
    d_grain_init(&grain);
    grain.gargv = argv;
    grain.host_class = 0x80000000u;
    must(d_gexec_grain(session, 10, &grain), "a grain that no host may run");
    must(d_explain(NULL, session, 10, &why), "d_explain");
    printf("%s, %d: %s\n", why->state, why->can_run, why->summary);
    NOTHING_LATER(why);
#ifndef SHORTER
    expect(why->reason_count > 0, "reasons");
    for (size_t i = 0; i < why->reason_count; i++) NOTHING_LATER(&why->reasons[i]);
#endif
    d_explanation_free(why);
    must(d_gkill(session, 10), "d_gkill");
}

static void change(void) {
    struct d_host_change host;
    d_host_change_init(&host);
    host.slots = 3;
    must(d_sethost("local1", &host), "d_sethost");
    host.slots = 2;
    must(d_sethost("local1", &host), "d_sethost");
}

static void lock(void) {
    struct {
        struct d_lock_request request;
        char behind[guard];
    } wish;
    struct {
        struct d_lock_answer answer;
        char behind[guard];
    } told;
    struct {
        struct d_lock_state state;
        char behind[guard];
    } seen;
    struct {
        struct d_slot_holder holders[2];
        char behind[guard];
    } who;
    static const char *const names[] = {"struct-sizes-slots"};
    static const int limits[] = {2};
    d_lock *held = NULL;
    d_slots *slots[2];
    size_t count = 0;
    mark(wish.behind), mark(told.behind), mark(seen.behind), mark(who.behind);
    d_lock_init(&wish.request), d_lock_answer_init(&told.answer), d_lock_state_init(&seen.state);
    d_slot_holder_init(who.holders, 2);
    expect(wish.request.expire_after == D_LOCK_NEVER, "the defaults of a request");
    wish.request.operator_ = "struct-sizes";
    expect(d_lock_get(&wish.request, &told.answer, &held) == D_LOCK_GRANTED && told.answer.token > 0, "a lock");
    expect(d_lock_look("struct-sizes", NULL, NULL, &seen.state) == D_LOCK_GRANTED && seen.state.held, "it is held");
    expect(seen.state.holder == getpid() && seen.state.token == told.answer.token, "by this process");
    for (int i = 0; i < 2; i++) expect(d_slot_take(names, limits, 1, 0, NULL, &slots[i]) == D_LOCK_GRANTED, "a slot");
    expect(d_slot_list(names[0], who.holders, 2, &count) == D_LOCK_GRANTED && count == 2, "two slots are held");
    for (int i = 0; i < 2; i++) {
        expect(who.holders[i].pid == getpid(), "by this process as well");
        NOTHING_LATER(&who.holders[i]);
        d_slot_release(slots[i]);
    }
    NOTHING_LATER(&wish.request);
    NOTHING_LATER(&told.answer);
    NOTHING_LATER(&seen.state);
    unmarked(wish.behind, "d_lock_init keeps to the struct"), unmarked(told.behind, "so does an answer");
    unmarked(seen.behind, "so does a state"), unmarked(who.behind, "so do holders");
    told.answer.struct_size = 5;
    d_lock *other = NULL;
    expect(d_lock_get(&wish.request, &told.answer, &other) == D_LOCK_FAILED && !other, "an answer of no such size");
    expect(d_lock_release(held, 1) == D_LOCK_GRANTED, "released");
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int session = atoi(argv[1]);
    struct d_pool_options options;
    d_pool_options_init(&options);
    options.directory = argv[2];
    struct d_pool *pool = d_pool_open(&options);
    must(pool ? D_OK : d_errornumber(), "d_pool_open");
    must(d_pool_get_auth(pool, "struct-sizes"), "d_pool_get_auth");
    d_pool_close(pool);
    must(d_get_auth("struct-sizes"), "d_get_auth");
    must(d_open_ses(session), "d_open_ses");
    initialised();
    submit(session);
    take(session);
    ask(session);
    explain(session);
    change();
    lock();
    must(d_close_ses(session), "d_close_ses");
    must(d_clean_ses(session), "d_clean_ses");
    return 0;
}
