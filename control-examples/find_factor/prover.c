/* Proofs of primality by PARI, which can be used only by the thread that initialized it. */
#include "find_factor.h"

#include <stdlib.h>
#include <string.h>

#include <pari/pari.h>

struct question {
    const char *number; /* decimal */
    int answer;         /* -1: none yet */
    struct question *next;
};

struct prover {
    pthread_mutex_t mutex;
    pthread_cond_t asked, answered;
    struct question *questions; /* of waiting threads; there are few */
    int poked;
};

struct prover *prover_new(void)
{
    struct prover *prover = calloc(1, sizeof *prover);
    if (prover == NULL) abort();
    pthread_mutex_init(&prover->mutex, NULL);
    pthread_cond_init(&prover->asked, NULL);
    pthread_cond_init(&prover->answered, NULL);
    /* Without PARI's signal handlers: an interrupt ends this program, and a rerun continues. */
    pari_init_opts(16000000, 1000, INIT_DFTm);
    paristack_setsize(16000000, 1000000000);
    return prover;
}

void prover_delete(struct prover *prover)
{
    pari_close();
    pthread_cond_destroy(&prover->answered);
    pthread_cond_destroy(&prover->asked);
    pthread_mutex_destroy(&prover->mutex);
    free(prover);
}

int prover_is_prime(struct prover *prover, const mpz_t n)
{
    char *number = mpz_get_str(NULL, 10, n);
    struct question question = {number, -1, NULL};
    pthread_mutex_lock(&prover->mutex);
    question.next = prover->questions;
    prover->questions = &question;
    pthread_cond_signal(&prover->asked);
    while (question.answer < 0) pthread_cond_wait(&prover->answered, &prover->mutex);
    pthread_mutex_unlock(&prover->mutex);
    free_text(number);
    return question.answer;
}

static int prove(const char *number)
{
    pari_sp mark = avma;
    int prime = isprime(strtoi(number)) != 0;
    set_avma(mark);
    return prime;
}

void prover_serve(struct prover *prover, int (*wake)(void *), void *context)
{
    int done = 0;
    pthread_mutex_lock(&prover->mutex);
    while (!done) {
        if (prover->questions != NULL) {
            struct question *question = prover->questions;
            prover->questions = question->next;
            pthread_mutex_unlock(&prover->mutex);
            int answer = prove(question->number);
            pthread_mutex_lock(&prover->mutex);
            question->answer = answer;
            pthread_cond_broadcast(&prover->answered);
        } else if (prover->poked) {
            prover->poked = 0;
            pthread_mutex_unlock(&prover->mutex);
            done = wake(context);
            pthread_mutex_lock(&prover->mutex);
        } else {
            pthread_cond_wait(&prover->asked, &prover->mutex);
        }
    }
    pthread_mutex_unlock(&prover->mutex);
}

void prover_poke(struct prover *prover)
{
    pthread_mutex_lock(&prover->mutex);
    prover->poked = 1;
    pthread_cond_signal(&prover->asked);
    pthread_mutex_unlock(&prover->mutex);
}
