/* One request by the paper's own arithmetic: locks_ask OPERAND IFELAPSED EXPIREAFTER NOW [hold]
 * Minutes ("inf": for ever) and seconds since 1970. Prints the answer's word; hold: keeps the lock until it is
 * killed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dcs_lock.h"

static int64_t minutes(const char *text) {
    return strcmp(text, "inf") == 0 ? D_LOCK_NEVER : atol(text) * D_LOCK_MINUTE;
}

int main(int argc, char **argv) {
    struct d_lock_request request;
    struct d_lock_answer answer = {.struct_size = sizeof(struct d_lock_answer)};
    d_lock *lock;
    int reason;
    if (argc < 5) return 2;
    d_lock_init(&request);
    request.operator_ = "ask";
    request.operand = argv[1];
    request.if_elapsed = minutes(argv[2]);
    request.expire_after = minutes(argv[3]);
    request.now = atol(argv[4]) * D_LOCK_SECOND;
    request.literal = 1;
    request.max_kills = 100;
    reason = d_lock_get(&request, &answer, &lock);
    printf("%s%s\n", d_lock_reason_word(reason), answer.took_over ? " took-over" : "");
    fflush(stdout);
    if (reason == D_LOCK_FAILED) fprintf(stderr, "%s\n", d_lock_errortext());
    if (reason == D_LOCK_GRANTED && argc > 5)
        for (;;) pause();
    if (reason == D_LOCK_GRANTED && d_lock_release(lock, 1) != D_LOCK_GRANTED) return 9;
    return reason == D_LOCK_FAILED ? 1 : 0;
}
