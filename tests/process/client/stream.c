/* A control program for kill_points.py. `stream run IDENT SEED HISTORY FIRST STOP` works through sessions FIRST,
 * FIRST + 1, ... until the file STOP exists: submits small grains, kills some, waits, takes the session over again,
 * closes, replays, reopens and removes. Every call is in HISTORY, one line before it (`N call ...`) and one with
 * its answer after it (`N done ...`), so that kill_points.py can tell what was promised; nothing is judged here.
 * `stream look` prints lengths and checksums of what the scheduler keeps of every finished grain. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dcs.h"

enum { grains_max = 20, big_input = 40000, sessions_max = 100000 };

static const char *ident, *stop_file;
static int history = -1, calls, session;
static uint64_t random_state;
static int submitted;              /* grains 1 .. submitted of the session were tried */
static char kinds[grains_max + 1]; /* [grain] */
static int killed[grains_max + 1];
static int closed_sessions[sessions_max], closed_count;

static unsigned below(unsigned n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

static int chance(unsigned percent) { return below(100) < percent; }

static void nap(long milliseconds) {
    struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* One write per line: a party that is killed leaves whole lines. */
static void note(const char *kind, const char *format, ...) {
    char line[8192];
    int n = snprintf(line, sizeof line, "%d %s ", calls, kind);
    va_list list;

    va_start(list, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, format, list);
    va_end(list);
    line[n++] = '\n';
    if (write(history, line, (size_t)n) == n) return;
    perror("stream: history");
    exit(4);
}

#define CALL(...) (calls++, note("call", __VA_ARGS__))
#define DONE(...) note("done", __VA_ARGS__)

static uint32_t crc_add(uint32_t crc, const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return crc;
}

static uint32_t crc_of_file(FILE *file, size_t *length) {
    char bytes[8192];
    uint32_t crc = 0xffffffffu;

    *length = 0;
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, file)) > 0; *length += n) crc = crc_add(crc, bytes, n);
    fclose(file);
    return ~crc;
}

/* Whether the call may or may not have happened, or not: then it is made again by a party that wants to know. */
static int in_doubt(int error) { return error == D_E_BROKEN || error == D_E_UNREACHABLE; }

static int unexpected(const char *call, int error) {
    fprintf(stderr, "stream %s: session %d: %s: %s: %s\n", ident, session, call, d_errorname(error), d_errortext());
    exit(3);
}

static void authenticate(void) {
    int error;
    do {
        CALL("auth %s", ident);
        DONE("%s", d_errorname(error = d_get_auth(ident)));
        if (in_doubt(error)) nap(20);
    } while (in_doubt(error));
    if (error != NO_ERROR) unexpected("d_get_auth", error);
}

static int open_session(void) {
    int error;
    CALL("open %d", session);
    DONE("%s", d_errorname(error = d_open_ses(session)));
    return error;
}

static void enter(const char *how, int reset) {
    int error;
    do {
        CALL("%s %d %d", how, session, reset);
        error = how[2] == 's' ? d_resume_ses(session, reset) : d_reopen_ses(session, reset);
        DONE("%s", d_errorname(error));
        if (in_doubt(error)) nap(20);
        if (error == D_E_SESSION_ACTIVE && how[2] == 'o') how = "resume"; /* its repetition: it had happened */
    } while (in_doubt(error) || error == D_E_SESSION_ACTIVE);
    if (error != NO_ERROR) unexpected(how, error);
}

/* What is printed depends on the name only; kinds: e(cho), s(low), b(ig), x (exit 3), f(or ever). */
static int submit_once(int grain) {
    static char input[big_input + 1];
    char text[100], script[300];
    char *echo[] = {"/bin/echo", text, NULL}, *shell[] = {"/bin/sh", "-c", script, NULL};
    char *cat[] = {"/bin/cat", NULL}, *forever[] = {"/bin/sleep", "36000", NULL};
    struct d_grain g;

    d_grain_init(&g);
    snprintf(text, sizeof text, "%s.%d.%d", ident, session, grain);
    g.gargv = kinds[grain] == 'e' ? echo : kinds[grain] == 'b' ? cat : kinds[grain] == 'f' ? forever : shell;
    if (kinds[grain] == 's') snprintf(script, sizeof script, "sleep 0.3; echo %s; echo %s >&2", text, text);
    if (kinds[grain] == 'x') snprintf(script, sizeof script, "echo %s; exit 3", text);
    if (kinds[grain] == 'b') {
        for (int n = 0; n < big_input;) n += snprintf(input + n, sizeof input - (size_t)n, "%s\n", text);
        g.input = input;
        g.input_length = big_input;
    }
    g.attempts = kinds[grain] == 'x' ? 1 : 3;
    g.urgent = chance(10);
    return d_gexec_grain(session, grain, &g);
}

/* What the scheduler shows of the session, after a call whose answer did not come. */
static void list_grains(void) {
    struct d_info *info;
    char rows[4096] = "";
    int error;

    CALL("list %d", session);
    error = d_query(D_Q_GRAINS, NULL, session, -1, &info);
    for (size_t i = 0, n = 0; error == NO_ERROR && i < info->grain_count; i++) {
        const struct d_grain_row *r = &info->grains[i];
        n += (size_t)snprintf(rows + n, sizeof rows - n, " %d:%s:%d", r->grain, r->state, r->result_index);
    }
    DONE("%s%s", d_errorname(error), rows);
    if (error == NO_ERROR) d_query_free(info);
}

static void submit(void) {
    static const char choice[] = "eeeeesssbxf";
    const int grain = ++submitted;
    int error;

    kinds[grain] = choice[below(sizeof choice - 1)];
    do {
        CALL("exec %d %d %c", session, grain, kinds[grain]);
        DONE("%s", d_errorname(error = submit_once(grain)));
        if (in_doubt(error) && chance(50)) list_grains();
    } while (in_doubt(error) && chance(70));
    if (error != NO_ERROR && error != D_E_GRAIN_EXISTS && !in_doubt(error)) unexpected("d_gexec", error);
}

static void kill_grain(int grain, int until_sure) {
    int error;
    do {
        CALL("kill %d %d", session, grain);
        DONE("%s", d_errorname(error = d_gkill(session, grain)));
        if (in_doubt(error) && chance(50)) list_grains();
        if (in_doubt(error)) nap(20);
    } while (in_doubt(error) && until_sure);
    if (error == NO_ERROR || error == D_E_GRAIN_UNKNOWN) killed[grain] = 1; /* unknown: the submission was lost */
    else if (!in_doubt(error)) unexpected("d_gkill", error);
}

static int wait_result(int block) {
    struct d_result result;
    int error;
    size_t out_length = 0, error_length = 0;
    uint32_t out_crc = 0, error_crc = 0;
    FILE *out, *err;

    d_result_init(&result, 1);
    CALL("wait %d %d", session, block);
    error = d_pool_gwait_streams(NULL, block, session, &result, &out, &err);
    if (error == NO_ERROR) {
        out_crc = crc_of_file(out, &out_length);
        error_crc = crc_of_file(err, &error_length);
    }
    DONE("%s %d %d %d %d %zu %08x %zu %08x", d_errorname(error), result.result_index, result.grain_num, result.termsig,
         result.retcode, out_length, out_crc, error_length, error_crc);
    if (in_doubt(error)) nap(20);
    else if (error != NO_ERROR && error != D_E_NOTHING_YET && error != D_E_NOTHING_LEFT && error != D_E_REPLAY_END)
        unexpected("d_gwait", error);
    return error;
}

static void drain(void) {
    int error;
    for (int grain = 1; grain <= submitted; grain++)
        if (kinds[grain] == 'f' && !killed[grain]) kill_grain(grain, 1);
    do error = wait_result(1);
    while (error == NO_ERROR || in_doubt(error));
}

static void close_session(void) {
    int error;
    do {
        CALL("close %d", session);
        DONE("%s", d_errorname(error = d_close_ses(session)));
        if (in_doubt(error)) nap(20);
    } while (in_doubt(error));
    if (error != NO_ERROR) unexpected("d_close_ses", error);
}

static void remove_session(void) {
    int error;
    do {
        CALL("clean %d", session);
        DONE("%s", d_errorname(error = d_clean_ses(session)));
        if (in_doubt(error)) nap(20);
    } while (in_doubt(error));
    if (error != NO_ERROR && error != D_E_SESSION_UNKNOWN) unexpected("d_clean_ses", error);
}

static void replay(void) {
    int error;
    enter("resume", 1);
    do error = wait_result(1);
    while (error == NO_ERROR || in_doubt(error));
    close_session();
}

static void some_action(int wanted) {
    const unsigned what = below(100);
    if (submitted < wanted && what < 50) return submit();
    if (what < 65 && submitted > 0) return kill_grain(1 + (int)below((unsigned)submitted), chance(70));
    if (what < 72) {
        if (chance(50)) authenticate();
        return enter("resume", chance(50));
    }
    wait_result(0);
    nap(below(30));
}

static void work(int grains) {
    const int wanted = submitted + grains;
    while (submitted < wanted) some_action(wanted);
    for (int more = (int)below(12); more > 0; more--) some_action(wanted);
}

static void one_session(void) {
    submitted = 0;
    memset(killed, 0, sizeof killed);
    const int error = chance(50) ? open_session() : D_E_SESSION_ACTIVE;
    if (error != NO_ERROR) enter("resume", 0);
    work(3 + (int)below(8));
    if (chance(75)) drain();
    for (int again = (int)below(3); again > 0; again--) { /* from the start, or from what was acknowledged */
        enter("resume", chance(50));
        if (chance(50)) wait_result(0);
        else drain();
    }
    close_session();
    if (chance(40)) replay();
    if (chance(30)) {
        enter("reopen", chance(50));
        work(2);
        if (chance(75)) drain();
        close_session();
    }
    if (chance(60)) remove_session();
    else if (closed_count < sessions_max) closed_sessions[closed_count++] = session;
}

/* All of it again at the end, by a run that remembers nothing. */
static void replay_all(void) {
    authenticate();
    for (int i = 0; i < closed_count; i++) {
        session = closed_sessions[i];
        replay();
    }
}

static int look_at(const struct d_grain_row *row) {
    const char *names[] = {"out", "err"};
    FILE *file;
    size_t length;

    printf("%d %d", row->session, row->grain);
    for (int i = 0; i < 2; i++) {
        const int error = d_grain_stream(NULL, row->session, row->grain, names[i], &file);
        if (error != NO_ERROR) unexpected("d_grain_stream", error);
        const uint32_t crc = crc_of_file(file, &length);
        printf(" %zu %08x", length, crc);
    }
    printf("\n");
    return 0;
}

static int look(void) {
    struct d_info *info;
    const int error = d_query(D_Q_FINISHED, NULL, -1, -1, &info);

    ident = "look";
    if (error != NO_ERROR) unexpected("d_query", error);
    for (size_t i = 0; i < info->grain_count; i++) look_at(&info->grains[i]);
    d_query_free(info);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "look") == 0) return look();
    if (argc != 7 || strcmp(argv[1], "run") != 0) {
        fprintf(stderr, "usage: stream run IDENT SEED HISTORY FIRST STOP | stream look\n");
        return 2;
    }
    ident = argv[2];
    random_state = strtoull(argv[3], NULL, 10) * 2654435761u + 12345;
    history = open(argv[4], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    session = atoi(argv[5]);
    stop_file = argv[6];
    if (history < 0) {
        perror(argv[4]);
        return 4;
    }
    authenticate();
    for (; access(stop_file, F_OK) != 0; session++) one_session();
    replay_all();
    return 0;
}
