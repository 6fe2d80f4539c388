/* For tests: what d_query and d_explain say, as JSON, and grains submitted with all their parameters.
 *   query hosts [active|delinquent]
 *   query grain SESSION GRAIN
 *   query explain SESSION GRAIN
 *   query submit IDENT SESSION GRAIN CLASS ATTEMPTS URGENT CMD [ARG...]
 *   query take IDENT SESSION          the next result, or the name of the error */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dcs.h"

static int failed(const char *call, int error) {
    fprintf(stderr, "query: %s: %s %s\n", call, d_errorname(error), d_errortext());
    return 1;
}

/* Names in this test need no escapes; texts are not printed. */
static void names(const char *key, const char *const *list, size_t count) {
    size_t i;

    printf(", \"%s\": [", key);
    for (i = 0; i < count; i++) printf("%s\"%s\"", i > 0 ? ", " : "", list[i]);
    printf("]");
}

static int hosts(const char *state) {
    struct d_info *info;
    size_t i;
    int type = !state ? D_Q_HOSTS : strcmp(state, "active") == 0 ? D_Q_HOSTS_ACTIVE : D_Q_HOSTS_DELINQUENT;
    int error = d_query(type, NULL, -1, -1, &info);

    if (error != NO_ERROR) return failed("d_query", error);
    printf("[");
    for (i = 0; i < info->host_count; i++) {
        const struct d_host_row *h = &info->hosts[i];
        printf(
            "%s{\"name\": \"%s\", \"state\": \"%s\", \"class\": %u, \"slots\": %d, \"running\": %d, "
            "\"drained\": %s, \"connected\": %s, \"shut\": %s, \"settings\": \"%s\"}",
            i > 0 ? ", " : "", h->name, h->state, h->host_class, h->slots, h->running, h->drained ? "true" : "false",
            h->connected ? "true" : "false", strncmp(h->note, "shut: ", 6) == 0 ? "true" : "false", h->settings);
    }
    printf("]\n");
    d_query_free(info);
    return 0;
}

static int grain(int session, int number) {
    struct d_info *info;
    const struct d_grain_row *g;
    size_t i;
    int error = d_query(D_Q_GRAIN, NULL, session, number, &info);

    if (error != NO_ERROR) return failed("d_query", error);
    g = info->grains;
    printf(
        "{\"grain\": %d, \"state\": \"%s\", \"host\": \"%s\", \"incarnation\": %u, \"failures\": %d, "
        "\"exit_code\": %d, \"signal\": %d, \"result_index\": %d",
        g->grain, g->state, g->host, g->incarnation, g->failures, g->exit_code, g->signal, g->result_index);
    names("nogo", g->nogo, g->nogo_count);
    printf(", \"moves\": [");
    for (i = 0; i < g->move_count; i++)
        printf("%s{\"reason\": \"%s\", \"host\": \"%s\", \"incarnation\": %u}", i > 0 ? ", " : "", g->moves[i].reason,
               g->moves[i].host, g->moves[i].incarnation);
    printf("]}\n");
    d_query_free(info);
    return 0;
}

static int explain(int session, int number) {
    struct d_explanation *why;
    size_t i;
    int error = d_explain(NULL, session, number, &why);

    if (error != NO_ERROR) return failed("d_explain", error);
    printf("{\"state\": \"%s\", \"can_run\": %s, \"ahead\": %d, \"reasons\": [", why->state,
           why->can_run ? "true" : "false", why->ahead);
    for (i = 0; i < why->reason_count; i++) {
        printf("%s{\"reason\": \"%s\", \"hosts\": %d", i > 0 ? ", " : "", why->reasons[i].reason,
               why->reasons[i].hosts);
        names("names", why->reasons[i].names, why->reasons[i].name_count);
        printf("}");
    }
    printf("]}\n");
    d_explanation_free(why);
    return 0;
}

static int submit(char **argv) {
    struct d_grain description;
    int session = atoi(argv[1]), error;

    if ((error = d_get_auth(argv[0])) != NO_ERROR) return failed("d_get_auth", error);
    if ((error = d_resume_ses(session, FALSE)) != NO_ERROR) return failed("d_resume_ses", error);
    d_grain_init(&description);
    description.host_class = (unsigned)strtoul(argv[3], NULL, 0);
    description.attempts = atoi(argv[4]);
    description.urgent = atoi(argv[5]);
    description.gargv = argv + 6;
    error = d_gexec_grain(session, atoi(argv[2]), &description);
    return error == NO_ERROR ? 0 : failed("d_gexec_grain", error);
}

static int take(const char *ident, int session) {
    int error, number = 0, signal = 0, code = 0;

    if ((error = d_get_auth(ident)) != NO_ERROR) return failed("d_get_auth", error);
    if ((error = d_resume_ses(session, FALSE)) != NO_ERROR) return failed("d_resume_ses", error);
    error = d_gwait(D_BLOCK, session, &number, NULL, NULL, &signal, &code, NULL, NULL, NULL, NULL, NULL);
    printf("{\"error\": \"%s\", \"grain\": %d, \"signal\": %d, \"code\": %d}\n", d_errorname(error), number, signal,
           code);
    return 0;
}

int main(int argc, char **argv) {
    if (argc >= 2 && strcmp(argv[1], "hosts") == 0) return hosts(argc > 2 ? argv[2] : NULL);
    if (argc == 4 && strcmp(argv[1], "grain") == 0) return grain(atoi(argv[2]), atoi(argv[3]));
    if (argc == 4 && strcmp(argv[1], "explain") == 0) return explain(atoi(argv[2]), atoi(argv[3]));
    if (argc > 8 && strcmp(argv[1], "submit") == 0) return submit(argv + 2);
    if (argc == 4 && strcmp(argv[1], "take") == 0) return take(argv[2], atoi(argv[3]));
    fprintf(stderr, "usage: query hosts|grain|explain|submit|take ...\n");
    return 2;
}
