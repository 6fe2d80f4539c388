/* Finds the session of this computation by its ident, so that a rerun finds it and other computations do
 * not. */
#include "count_primes.h"

#include <pwd.h>
#include <stdio.h>
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

/* The session with this ident, or 0. */
static int find(const struct d_info *info, const char *user, const char *ident)
{
    for (size_t i = 0; i < info->session_count; i++)
        if (strcmp(info->sessions[i].user, user) == 0 && strcmp(info->sessions[i].ident, ident) == 0)
            return info->sessions[i].session;
    return 0;
}

static int is_used(const struct d_info *info, const char *user, int number)
{
    for (size_t i = 0; i < info->session_count; i++)
        if (info->sessions[i].session == number && strcmp(info->sessions[i].user, user) == 0) return 1;
    return 0;
}

int own_session(const char *ident)
{
    char user[256];
    struct d_info *info = NULL;
    login_name(user, sizeof user);
    int error = d_get_auth(ident);
    if (error == NO_ERROR) error = d_query(D_Q_SESSIONS, user, -1, -1, &info);
    if (error != NO_ERROR) return -error;
    int number = find(info, user, ident);
    if (number > 0) {
        error = d_resume_ses(number, TRUE);
    } else {
        /* Another program of this user has taken the number since the query: try the next one. */
        do {
            do number++;
            while (is_used(info, user, number));
            error = d_resume_ses(number, TRUE);
        } while (error == D_E_SESSION_TAKEN || error == D_E_SESSION_CLOSED);
    }
    d_query_free(info);
    return error == NO_ERROR ? number : -error;
}
