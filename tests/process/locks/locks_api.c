/* The calls of dcs_lock.h, each with what it promises; in C11, and again in C++ (locks_api_cxx.cc). Silent and 0 if
 * all is well. DCS_LOCK_DIR is an empty directory. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dcs_lock.h"

#define CHECK(condition)                                                                             \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            fprintf(stderr, "line %d: %s is false; %s\n", __LINE__, #condition, d_lock_errortext()); \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

static int in_child(int (*body)(void)) {
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) _exit(body());
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static struct d_lock_request request_for(const char *operand) {
    struct d_lock_request request;
    d_lock_init(&request);
    request.operator_ = "api";
    request.operand = operand;
    return request;
}

static int get(const char *operand, d_lock **lock) {
    struct d_lock_request request = request_for(operand);
    return d_lock_get(&request, NULL, lock);
}

static int get_within(const char *operand, int64_t wait) {
    struct d_lock_request request = request_for(operand);
    d_lock *lock;
    request.wait = wait;
    return d_lock_get(&request, NULL, &lock);
}

static int asks_paper(void) { return GetLock("paper", "x", 0, 90, NULL, 0); }

static void the_papers_calls(void) {
    struct d_lock_state state = {.struct_size = sizeof(struct d_lock_state)};
    CHECK(ReleaseCurrentLock() == D_LOCK_FAILED);
    CHECK(GetLock("paper", "x", 15, 90, NULL, time(NULL)) == 1);
    CHECK(in_child(asks_paper) == 0);
    CHECK(GetLock("paper", "x", 15, 90, NULL, time(NULL)) == 0); /* nor by the same process again */
    CHECK(strstr(d_lock_errortext(), "process") != NULL);
    CHECK(GetLock("paper", "y", 15, 90, "", 0) == 1); /* nested */
    CHECK(d_lock_look("paper", "y", NULL, &state) == 0 && state.held && state.holder == getpid());
    CHECK(ReleaseCurrentLock() == 0);
    CHECK(d_lock_look("paper", "y", NULL, &state) == 0 && !state.held && strcmp(state.outcome, "done") == 0);
    CHECK(d_lock_look("paper", "x", NULL, &state) == 0 && state.held && strcmp(state.outcome, "running") == 0);
    CHECK(ReleaseCurrentLock() == 0);
    CHECK(ReleaseCurrentLock() == D_LOCK_FAILED);
    CHECK(GetLock("paper", "x", 15, 90, NULL, time(NULL)) == 0);
    CHECK(GetLock("paper", "x", 0, 90, NULL, time(NULL)) == 1);
    CHECK(ReleaseCurrentLock() == 0);
    CHECK(GetLock("paper", "x", 0, 0, NULL, 0) == 0); /* P32 */
    CHECK(GetLock("paper", "x", -5, 90, NULL, 0) == 0);
    CHECK(GetLock("paper", "x", 0, LONG_MIN, NULL, 0) == 0);
    CHECK(GetLock("paper", "x", 0, LONG_MAX, NULL, 0) == 1);
    CHECK(ReleaseCurrentLock() == 0);
    CHECK(GetLock("paper", "auto", D_LOCK_AUTO, D_LOCK_AUTO, NULL, 0) == 1);
    CHECK(ReleaseCurrentLock() == 0);
    CHECK(GetLock(NULL, "x", 0, 90, NULL, 0) == 0);
    CHECK(GetLock("", "x", 0, 90, NULL, 0) == 0);
    CHECK(GetLock("paper", "x", 0, 90, "elsewhere", 0) == 1); /* another atom */
    CHECK(ReleaseCurrentLock() == 0);
}

/* P23, P24, P25, P26: names. */
static void names(void) {
    static const char *const pairs[][2] = {{"/a/b", "/a_b"}, {"db-1", "db_1"}, {"a.b", "a"}, {"\xc3\xa4", "a"},
                                           {"a,b", "a%2Cb"}, {"", " "},        {"A", "a"}};
    size_t i;
    char *huge = (char *)malloc(4097), *more = (char *)malloc(20000);
    d_lock *a, *b, *c;
    for (i = 0; i < sizeof pairs / sizeof pairs[0]; ++i) {
        CHECK(get(pairs[i][0], &a) == 0);
        CHECK(get(pairs[i][1], &b) == 0);
        CHECK(get(pairs[i][0], &c) == D_LOCK_BUSY && c == NULL);
        CHECK(d_lock_release(a, 1) == 0 && d_lock_release(b, 1) == 0);
    }
    memset(huge, 'x', 4096);
    huge[4096] = '\0';
    memset(more, 'x', 19999);
    more[19999] = '\0';
    CHECK(get(huge, &a) == 0);
    huge[4095] = 'y';
    CHECK(get(huge, &b) == 0);
    CHECK(get(huge, &c) == D_LOCK_BUSY);
    CHECK(d_lock_release(a, 1) == 0 && d_lock_release(b, 1) == 0);
    CHECK(get(more, &a) == D_LOCK_FAILED);
    free(huge);
    free(more);
    /* P24: the operator ends where the operand begins. */
    CHECK(GetLock("a.b", "c", 0, 90, NULL, 0) == 1 && GetLock("a", "b.c", 0, 90, NULL, 0) == 1);
    CHECK(ReleaseCurrentLock() == 0 && ReleaseCurrentLock() == 0);
}

static void answers(void) {
    struct d_lock_request request = request_for("answer");
    struct d_lock_answer answer = {.struct_size = sizeof(struct d_lock_answer)};
    uint64_t token;
    d_lock *lock, *other;
    request.if_elapsed = D_LOCK_MINUTE;
    request.expire_after = 90 * D_LOCK_MINUTE;
    CHECK(d_lock_get(&request, &answer, &lock) == 0);
    CHECK(answer.reason == 0 && answer.elapsed == -1 && answer.soft == request.expire_after && answer.token != 0);
    token = answer.token;
    CHECK(d_lock_token(lock) == token);
    CHECK((fcntl(d_lock_fd(lock), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(d_lock_get(&request, &answer, &other) == D_LOCK_BUSY && other == NULL);
    CHECK(answer.holder == getpid() && answer.holder_uid == getuid() && answer.again_in > 89 * D_LOCK_MINUTE);
    CHECK(strncmp(answer.holder_command, "locks_api", 9) == 0);
    CHECK(strchr(d_lock_errortext(), '\n') == NULL && strlen(d_lock_errortext()) > 20);
    CHECK(d_lock_release(lock, 0) == 0);
    CHECK(d_lock_get(&request, &answer, &lock) == D_LOCK_TOO_SOON && answer.again_in > 50 * D_LOCK_SECOND);
    request.if_elapsed = 0;
    CHECK(d_lock_get(&request, &answer, &lock) == 0 && answer.token > token);
    CHECK(d_lock_release(lock, 1) == 0);
    CHECK(d_lock_get(NULL, &answer, &lock) == D_LOCK_FAILED && d_lock_get(&request, &answer, NULL) == D_LOCK_FAILED);
    CHECK(d_lock_release(NULL, 1) == D_LOCK_FAILED && d_lock_adopt(NULL) == D_LOCK_FAILED && d_lock_fd(NULL) == -1);
    CHECK(strcmp(d_lock_reason_word(D_LOCK_TOO_SOON), "too-soon") == 0);
    CHECK(strcmp(d_lock_reason_word(77), "unknown") == 0);
    request.wait = D_LOCK_AUTO;
    CHECK(d_lock_get(&request, &answer, &lock) == D_LOCK_FAILED && strstr(d_lock_errortext(), "-1 in a request"));
    request.wait = 0;
    request.operator_ = NULL;
    CHECK(d_lock_get(&request, &answer, &lock) == D_LOCK_FAILED);
    request.path = "no-slash";
    CHECK(d_lock_get(&request, &answer, &lock) == D_LOCK_FAILED);
}

static d_lock *inherited;
static int adopts(void) {
    struct d_lock_state state = {.struct_size = sizeof(struct d_lock_state)};
    if (d_lock_adopt(inherited) != 0 || d_lock_look("api", "fork", NULL, &state) != 0) return 1;
    return state.held && state.holder == getpid() ? d_lock_release(inherited, 1) : 2;
}

/* P30: a lock that was taken before a fork. */
static void forks(void) {
    d_lock *again;
    CHECK(get("fork", &inherited) == 0);
    CHECK(in_child(adopts) == 0);
    CHECK(get("fork", &again) == 0); /* released by word, so for the parent's copy too */
    d_lock_abandon(inherited);
    CHECK(d_lock_release(again, 1) == 0);
}

static void *asks_from_a_thread(void *result) {
    d_lock *lock;
    *(int *)result = get("thread", &lock);
    (void)!GetLock("thread", "left", 0, 90, NULL, 0); /* and ends without releasing it */
    return NULL;
}

static void threads(void) {
    d_lock *lock;
    struct d_lock_state state = {.struct_size = sizeof(struct d_lock_state)};
    pthread_t thread;
    int result = 0;
    CHECK(get("thread", &lock) == 0);
    CHECK(pthread_create(&thread, NULL, asks_from_a_thread, &result) == 0);
    pthread_join(thread, NULL);
    CHECK(result == D_LOCK_BUSY);
    CHECK(d_lock_release(lock, 1) == 0);
    CHECK(d_lock_look("thread", "left", NULL, &state) == 0 && !state.held);
    CHECK(GetLock("thread", "left", 0, 90, NULL, 0) == 1 && ReleaseCurrentLock() == 0);
}

/* L3: at most so many instances of a program, and no atom for one too many. */
static void instances(void) {
    struct d_lock_request request;
    d_lock *a, *b, *c;
    d_lock_init(&request);
    request.operator_ = "program";
    request.instances = 2;
    request.operand = "a";
    CHECK(d_lock_get(&request, NULL, &a) == 0);
    request.operand = "b";
    CHECK(d_lock_get(&request, NULL, &b) == 0);
    request.operand = "c";
    CHECK(d_lock_get(&request, NULL, &c) == D_LOCK_LIMIT);
    request.instances = 0;
    CHECK(d_lock_get(&request, NULL, &c) == 0); /* the atom was not taken */
    CHECK(d_lock_release(c, 1) == 0 && d_lock_release(b, 1) == 0);
    request.instances = 2;
    request.operand = "a";
    CHECK(d_lock_get(&request, NULL, &c) == D_LOCK_BUSY);
    request.operand = "b";
    CHECK(d_lock_get(&request, NULL, &b) == 0); /* the slot of the one that was busy is free again */
    CHECK(d_lock_release(a, 1) == 0 && d_lock_release(b, 1) == 0);
}

static int enters(void) {
    d_lock *lock;
    return d_lock_enter("section", 0, &lock);
}

static int waits_in_line(void) {
    d_lock *lock;
    if (d_lock_enter("section", D_LOCK_FOREVER, &lock) != 0) return 1;
    return d_lock_leave(lock);
}

static void in_order(void) {
    d_lock *lock;
    struct d_lock_state state = {.struct_size = sizeof(struct d_lock_state)};
    struct timespec moment = {0, 2000000};
    int status = -1, i;
    pid_t waiter;
    CHECK(d_lock_enter("section", 0, &lock) == 0);
    CHECK(in_child(enters) == D_LOCK_BUSY);
    waiter = fork();
    if (waiter == 0) _exit(waits_in_line());
    for (i = 0; i < 5000; ++i) {
        CHECK(d_lock_look("section", NULL, NULL, &state) == 0);
        if (state.waiting == 1) break;
        nanosleep(&moment, NULL);
    }
    CHECK(state.waiting == 1);
    CHECK(in_child(enters) == D_LOCK_BUSY);
    CHECK(d_lock_leave(lock) == 0);
    CHECK(waitpid(waiter, &status, 0) == waiter && status == 0);
    CHECK(in_child(enters) == 0);
}

static int without_streams(void) { /* started without standard streams: none becomes a lock's */
    static const char *const names[] = {"streamless"};
    static const int two[] = {2};
    d_lock *lock;
    d_slots *slots;
    int fd, wrong = 0;
    for (fd = 0; fd < 3; ++fd) close(fd);
    if (get("streamless", &lock) != 0 || d_slot_take(names, two, 1, 0, NULL, &slots) != 0) return 1;
    for (fd = 0; fd < 3; ++fd)
        if (fcntl(fd, F_GETFD) >= 0) wrong = 2;
    if (d_lock_fd(lock) < 3 || d_slot_fd(slots, 0) < 3) wrong = 3;
    return wrong;
}

static d_lock *entered;

static void *enters_in_line(void *unused) {
    (void)unused;
    d_lock_enter("cancelled", D_LOCK_NEVER, &entered);
    pthread_testcancel();
    return NULL;
}

static void cancelled(void) { /* in its wait: it ends when it has what the call promised */
    const struct timespec moment = {0, 2000000};
    struct d_lock_state state = {.struct_size = sizeof(struct d_lock_state)};
    pthread_t thread;
    void *end = NULL;
    d_lock *lock;
    CHECK(d_lock_enter("cancelled", 0, &lock) == 0);
    CHECK(pthread_create(&thread, NULL, enters_in_line, NULL) == 0);
    while (d_lock_look("cancelled", NULL, NULL, &state) == 0 && state.waiting == 0) nanosleep(&moment, NULL);
    CHECK(pthread_cancel(thread) == 0);
    CHECK(d_lock_leave(lock) == 0);
    CHECK(pthread_join(thread, &end) == 0 && end == PTHREAD_CANCELED);
    CHECK(entered != NULL && d_lock_enter("cancelled", 0, &lock) == D_LOCK_BUSY);
    CHECK(d_lock_leave(entered) == 0);
    CHECK(d_lock_enter("cancelled", 0, &lock) == 0 && d_lock_leave(lock) == 0);
}

static volatile sig_atomic_t handled;
static void count_signal(int number) { handled = handled + (number == SIGRTMAX - 1); }

static int waits_briefly(void) { return get_within("signals", D_LOCK_SECOND / 100); }

static int handles_signals(void) { /* those of the program stay the program's, and end no wait late */
    struct sigaction action;
    int before, after;
    alarm(60);
    before = waits_briefly();
    memset(&action, 0, sizeof action);
    action.sa_handler = count_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGRTMAX - 1, &action, NULL);
    after = waits_briefly();
    raise(SIGRTMAX - 1);
    return before != D_LOCK_BUSY ? 1 : after != D_LOCK_BUSY ? 2 : handled != 1 ? 3 : 0;
}

static int handled_signals(void) { /* before the first wait */
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = count_signal;
    sigaction(SIGRTMAX - 1, &action, NULL);
    if (waits_briefly() != D_LOCK_BUSY) return 1;
    raise(SIGRTMAX - 1);
    return handled != 1;
}

static void signals(void) {
    d_lock *lock;
    CHECK(get("signals", &lock) == 0);
    CHECK(in_child(handled_signals) == 0);
    CHECK(in_child(handles_signals) == 0);
    CHECK(d_lock_release(lock, 1) == 0);
}

static int takes_slot(void) {
    static const char *const names[] = {"total"};
    static const int two[] = {2};
    d_slots *slots;
    return d_slot_take(names, two, 1, 0, NULL, &slots);
}

static void slots(void) {
    static const char *const both[] = {"total", "narrow"};
    static const int limits[] = {2, 1}, none[] = {0}, wrong[] = {-1};
    struct d_slot_holder holders[1] = {{.struct_size = sizeof *holders}};
    size_t count = 0;
    d_slots *a, *b;
    CHECK(d_slot_list("total", holders, 1, &count) == 0 && count == 0); /* never used */
    CHECK(d_slot_take(both, limits, 2, 0, "the first", &a) == 0);
    CHECK(d_slot_number(a, 0) == 0 && d_slot_number(a, 1) == 0 && d_slot_number(a, 2) == -1);
    CHECK(d_slot_fd(a, 1) >= 0 && d_slot_fd(a, 2) == -1);
    CHECK(d_slot_take(both, limits, 2, 0, NULL, &b) == D_LOCK_LIMIT && b == NULL); /* narrow is full */
    CHECK(d_slot_take(both, limits, 1, 0, "the second", &b) == 0);                 /* and total was not taken */
    CHECK(in_child(takes_slot) == D_LOCK_LIMIT);
    CHECK(d_slot_list("total", holders, 1, &count) == 0 && count == 2);
    CHECK(holders[0].pid == getpid() && strcmp(holders[0].note, "the first") == 0);
    CHECK(d_slot_release(b) == 0);
    CHECK(in_child(takes_slot) == 0);
    CHECK(d_slot_release(a) == 0);
    CHECK(d_slot_list("total", holders, 1, &count) == 0 && count == 0);
    CHECK(d_slot_take(both, none, 1, 0, NULL, &a) == D_LOCK_LIMIT);
    CHECK(d_slot_take(both, wrong, 1, 0, NULL, &a) == D_LOCK_FAILED);
    CHECK(d_slot_take(both, limits, 1, -1, NULL, &a) == D_LOCK_FAILED && strstr(d_lock_errortext(), "wait is -1"));
    CHECK(d_slot_take(both, limits, 0, 0, NULL, &a) == D_LOCK_FAILED);
    CHECK(d_slot_release(NULL) == D_LOCK_FAILED && d_slot_list(NULL, holders, 1, &count) == D_LOCK_FAILED);
}

int main(void) {
    the_papers_calls();
    names();
    answers();
    forks();
    threads();
    instances();
    in_order();
    slots();
    CHECK(in_child(without_streams) == 0);
    cancelled();
    signals();
    return 0;
}
