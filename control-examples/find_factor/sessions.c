/* Assigns sessions to the numbers of the list.
 *
 * The sessions with this list's ident, in ascending order, belong to its numbers in their
 * order. That remains true when the program is interrupted at any place, because sessions are opened
 * one after the other and a new one always gets a number above those of the list's earlier ones. */
#include "find_factor.h"

#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dcs.h"

/* The user's name as the scheduler knows it. */
static void login_name(char *name, size_t room)
{
    const struct passwd *entry = getpwuid(geteuid());
    if (entry != NULL) snprintf(name, room, "%s", entry->pw_name);
    else snprintf(name, room, "uid%lu", (unsigned long)geteuid());
}

static int is_used(const struct d_info *info, const char *user, int number)
{
    for (size_t i = 0; i < info->session_count; i++)
        if (info->sessions[i].session == number && strcmp(info->sessions[i].user, user) == 0) return 1;
    return 0;
}

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Finds the sessions that an earlier run opened; returns how many of the wanted ones exist. */
static size_t own_sessions(const struct d_info *info, const char *user, const char *ident, int *sessions, size_t count)
{
    int *own = malloc((info->session_count + 1) * sizeof *own);
    if (own == NULL) abort();
    size_t found = 0;
    for (size_t i = 0; i < info->session_count; i++) {
        const struct d_session_row *row = &info->sessions[i];
        if (strcmp(row->user, user) == 0 && strcmp(row->ident, ident) == 0) own[found++] = row->session;
    }
    qsort(own, found, sizeof *own, compare);
    if (found > count) found = count;
    memcpy(sessions, own, found * sizeof *own);
    free(own);
    return found;
}

static int open_one(const struct d_info *info, const char *user, int *session, int first, int is_new)
{
    for (int number = first; number < INT_MAX; number++) {
        if (is_new && is_used(info, user, number)) continue;
        int error = d_resume_ses(number, TRUE);
        /* Another program of this user has taken the number since the query: try the next one. */
        if (error == D_E_SESSION_TAKEN && is_new) continue;
        if (error != NO_ERROR) {
            say_error(error, number, "cannot open the session");
            return -1;
        }
        *session = number;
        return 0;
    }
    say("no session number is free");
    return -1;
}

int sessions_open(const char *ident, int *sessions, size_t count)
{
    int error = d_get_auth(ident);
    if (error != NO_ERROR) {
        say_error(error, -1, "cannot begin");
        return -1;
    }
    char user[256];
    login_name(user, sizeof user);
    struct d_info *info = NULL;
    error = d_query(D_Q_SESSIONS, user, -1, -1, &info);
    if (error != NO_ERROR) {
        say_error(error, -1, "cannot look for earlier sessions");
        return -1;
    }
    size_t known = own_sessions(info, user, ident, sessions, count);
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        int is_new = i >= known;
        int first = !is_new ? sessions[i] : i == 0 ? 1 : sessions[i - 1] + 1;
        status = open_one(info, user, &sessions[i], first, is_new);
    }
    d_query_free(info);
    if (status == 0 && known > 0)
        say("%zu of %zu sessions exist from an earlier run; continuing with them", known, count);
    return status;
}
