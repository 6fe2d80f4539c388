/* Messages for the user. Standard output is for factorizations only. */
#include "find_factor.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "dcs.h"

static atomic_int gone = 0;

void say(const char *format, ...)
{
    char text[2048];
    int start = snprintf(text, sizeof text, "find_factor: ");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + start, sizeof text - (size_t)start - 1, format, arguments);
    va_end(arguments);
    strcat(text, "\n");
    fputs(text, stderr); /* one call, so that lines of several threads do not mix */
}

int scheduler_is_gone(void)
{
    return atomic_load(&gone);
}

static const char *advice(int error)
{
    switch (error) {
    case D_E_UNREACHABLE:
    case D_E_BROKEN:
        return "Run the same command again when the scheduler answers: nothing is lost, it continues where it stopped.";
    case D_E_GRAIN_DIFFERS:
        return "This list was started with other options or another grain program. Use the same "
               "ones, or close and clean its sessions to start over.";
    case D_E_SESSION_TAKEN: return "Another find_factor works on the same list; this one stops.";
    case D_E_REPLAY_END:
        return "The session was closed before its number was factored; reopen it, or clean it to start over.";
    case D_E_CANNOT_RUN: return "Run the same command again when the pool has such a host.";
    default: return "Run the same command again when the cause is removed.";
    }
}

void say_error(int error, int session, const char *what)
{
    /* The text belongs to the thread's last call, so it must be read first. */
    const char *particulars = d_errortext();
    char where[48] = "";
    if (session >= 0) snprintf(where, sizeof where, "session %d: ", session);
    int was_gone = 0;
    if (error == D_E_UNREACHABLE || error == D_E_BROKEN) was_gone = atomic_exchange(&gone, 1);
    if (was_gone) return; /* reported once */
    const char *name = d_errorname(error), *sentence = d_strerror(error);
    if (particulars != NULL && particulars[0] != '\0' && strcmp(particulars, sentence) != 0)
        say("%s%s: %s: %s\n  %s\n  %s", where, what, name, sentence, particulars, advice(error));
    else say("%s%s: %s: %s\n  %s", where, what, name, sentence, advice(error));
}

void name_number(char *text, size_t room, const mpz_t n)
{
    char *digits = NULL;
    if (gmp_asprintf(&digits, "%Zd", n) < 0) abort();
    size_t length = strlen(digits);
    if (length <= 24) snprintf(text, room, "C%zu %s", length, digits);
    else snprintf(text, room, "C%zu %.8s...%s", length, digits, digits + length - 8);
    free_text(digits);
}

void free_text(char *text)
{
    void (*release)(void *, size_t);
    mp_get_memory_functions(NULL, NULL, &release);
    release(text, strlen(text) + 1);
}
