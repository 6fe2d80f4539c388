/* The control program: reads the list, opens a session for each number, and processes them in a few
 * threads; lines are printed in the order of the list.
 * Exit status: 0 all numbers are factored, 1 not all of them, 2 wrong usage or an invalid list. */
#include "find_factor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct program {
    struct search *searches;
    unsigned char *ended;
    size_t count, next, printed;
    size_t threads; /* still running */
    struct prover *prover;
    pthread_mutex_t mutex;
    int status;
};

static void *worker(void *argument)
{
    struct program *program = argument;
    pthread_mutex_lock(&program->mutex);
    while (program->next < program->count && !scheduler_is_gone()) {
        size_t mine = program->next++;
        pthread_mutex_unlock(&program->mutex);
        search_run(&program->searches[mine]);
        pthread_mutex_lock(&program->mutex);
        program->ended[mine] = 1;
        prover_poke(program->prover);
    }
    program->threads--;
    prover_poke(program->prover);
    pthread_mutex_unlock(&program->mutex);
    return NULL;
}

/* Prints the next finished lines in order; returns 1 when all threads have ended. */
static int print_ended(void *context)
{
    struct program *program = context;
    pthread_mutex_lock(&program->mutex);
    while (program->printed < program->count && program->ended[program->printed]) {
        const struct search *search = &program->searches[program->printed++];
        if (search->line != NULL) fputs(search->line, stdout);
        if (search->failed || search->incomplete) program->status = 1;
    }
    fflush(stdout);
    int done = program->threads == 0;
    pthread_mutex_unlock(&program->mutex);
    return done;
}

static void start_threads(struct program *program, pthread_t *threads, size_t count)
{
    pthread_mutex_lock(&program->mutex);
    for (size_t i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, worker, program) != 0) {
            say("cannot start a thread");
            exit(1);
        }
        program->threads++;
    }
    pthread_mutex_unlock(&program->mutex);
}

static int factor_all(struct options *options, struct number_list *list, const int *sessions)
{
    struct program program;
    memset(&program, 0, sizeof program);
    program.count = list->count;
    program.searches = calloc(list->count, sizeof *program.searches);
    program.ended = calloc(list->count, 1);
    size_t thread_count = options->parallel < list->count ? options->parallel : list->count;
    pthread_t *threads = calloc(thread_count, sizeof *threads);
    if (program.searches == NULL || program.ended == NULL || threads == NULL) abort();
    program.prover = prover_new();
    pthread_mutex_init(&program.mutex, NULL);
    for (size_t i = 0; i < list->count; i++) {
        program.searches[i].options = options;
        program.searches[i].prover = program.prover;
        program.searches[i].session = sessions[i];
        program.searches[i].n = &list->numbers[i];
    }
    start_threads(&program, threads, thread_count);
    prover_serve(program.prover, print_ended, &program);
    for (size_t i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
    /* Also prints the finished lines after a number that was left out because the scheduler was away. */
    for (; program.printed < program.count; program.printed++) {
        const char *line = program.searches[program.printed].line;
        if (line != NULL) fputs(line, stdout);
        program.status = 1;
    }
    for (size_t i = 0; i < list->count; i++) free(program.searches[i].line);
    pthread_mutex_destroy(&program.mutex);
    prover_delete(program.prover);
    free(threads);
    free(program.ended);
    free(program.searches);
    return program.status;
}

int main(int argc, char **argv)
{
    struct options options;
    struct number_list list;
    options_parse(&options, argc, argv);
    if (number_list_read(&list, stdin) != 0) return 2;
    int status = 0;
    if (list.count > 0) {
        char ident[64];
        snprintf(ident, sizeof ident, "find_factor-%016" PRIx64, list.digest);
        int *sessions = calloc(list.count, sizeof *sessions);
        if (sessions == NULL) abort();
        status = sessions_open(ident, sessions, list.count) == 0 ? factor_all(&options, &list, sessions) : 1;
        free(sessions);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        say("cannot write the factors to standard output");
        status = 1;
    }
    number_list_clear(&list);
    free(options.grain);
    return status;
}
