/* A control program for tests that decides by results: decide SESSION HOW [LAST] submits four grains, and after the
 * result of each another one, with the result as its argument; prints every result. Ends after LAST results, with
 * code 3. HOW: "same"; "argument": grain 3 gets another one; "early": a grain 9 comes first; "less": grain 4 is left
 * out; "none": all are; "reset": without sent_reset; "four": without others, until four results were returned. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dcs.h"

static int report(const char *call, int error) {
    fprintf(stderr, "decide: %s: %s %s: %s\n", call, d_errorname(error), d_strerror(error), d_errortext());
    return 1;
}

static int submit(int session, int grain, const char *word) {
    char *argv[] = {"/bin/echo", (char *)word, NULL}, *env[] = {NULL};
    const int error = d_gexec(session, grain, argv, env, "", 0, 0, FALSE, 0);
    return error == NO_ERROR ? 0 : report("d_gexec", error);
}

int main(int argc, char **argv) {
    const int session = argc > 2 ? atoi(argv[1]) : -1, last = argc > 3 ? atoi(argv[3]) : 0;
    const char *how = argc > 2 ? argv[2] : "";
    int error, grain, taken = 0, sent = 0;
    char *out;

    if (session < 0) return 2;
    if ((error = d_get_auth("decide")) != NO_ERROR) return report("d_get_auth", error);
    if ((error = d_resume_ses(session, strcmp(how, "reset") != 0)) != NO_ERROR) return report("d_resume_ses", error);
    if (strcmp(how, "none") == 0) return 0;
    if (strcmp(how, "early") == 0 && submit(session, 9, "early")) return 1;
    for (grain = 1; grain <= 4 - (strcmp(how, "less") == 0); grain++) {
        char word[32];
        snprintf(word, sizeof word, "%s%d", grain == 3 && strcmp(how, "argument") == 0 ? "other" : "grain", grain);
        if (submit(session, grain, word)) return 1;
    }
    while (taken < 8 && !(strcmp(how, "four") == 0 && sent >= 4)) {
        error = d_gwait(D_BLOCK, session, &grain, NULL, &sent, NULL, NULL, NULL, NULL, &out, NULL, NULL);
        if (error != NO_ERROR) return report("d_gwait", error);
        printf("%d %s", grain, out);
        fflush(stdout);
        if (++taken == last) return 3;
        out[strcspn(out, "\n")] = '\0';
        if (grain <= 4 && strcmp(how, "four") != 0 && submit(session, 10 + grain, out)) return 1;
    }
    return (error = d_close_ses(session)) == NO_ERROR ? 0 : report("d_close_ses", error);
}
