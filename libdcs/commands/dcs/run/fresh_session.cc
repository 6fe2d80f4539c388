#include "fresh_session.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <set>
#include <utility>

#include "base/text.h"
#include "commands/dcs/query/scheduler.h"
#include "dcs.h"
#include "pki/digest.h"
#include "commands/dcs/frame/pool_directory.h"

namespace dcs::commands {
namespace {

constexpr int most_tries = 1000;  // others may take numbers at the same moment

// No number comes twice, as long as there are some.
int number_after(int removed) { return removed < numbers_in_a_row ? std::max(removed, 0) + 1 : 1; }

// Their outputs stay. False: there are none.
bool close_ended(const std::vector<Session> &sessions) {
    bool any = false;
    for (const Session &s : sessions)
        if (s.is_done() && s.ident.starts_with(detached_ident))
            any = d_pool_close_ses_of(&this_pool(), s.user.c_str(), s.session) == NO_ERROR || any;
    return any;
}

}  // namespace

std::string random_suffix() {
    const Token token = pki::random_token();
    return hex_of(std::string(token.begin(), token.begin() + 4));
}

OpenedSession open_fresh_session(const std::string &ident) {
    const SessionsAnswer own = own_sessions();
    if (own.failure) return {.failure = own.failure};
    if (const int error = d_pool_get_auth(&this_pool(), ident.c_str()); error != NO_ERROR)
        return {.failure = call_failure("the authorization", error)};
    bool may_close = true;
    std::set<int> used;
    for (const Session &session : own.sessions) used.insert(session.session);
    for (int tries = 1, number = number_after(own.last_number);; ++tries, ++number) {
        while (used.count(number) > 0) ++number;
        const int error = d_pool_resume_ses(&this_pool(), number, 1);
        if (error == NO_ERROR) return {.number = number};
        const Failure failure = call_failure("a new session", error);
        const bool in_use = error == D_E_SESSION_TAKEN || error == D_E_SESSION_ACTIVE || error == D_E_SESSION_CLOSED;
        const bool again =
            in_use || (error == D_E_LIMIT && std::exchange(may_close, false) && close_ended(own.sessions));
        if (!again || tries == most_tries) return {.failure = failure};
    }
}

void end_session(int session) {
    d_pool_close_ses(&this_pool(), session);
    d_pool_clean_ses(&this_pool(), session);
}

void keep_session(int session, int grain) {
    d_pool_close_ses(&this_pool(), session);
    std::fprintf(stderr,
                 "dcs run: session %d has all outputs: `dcs grain cat %d:%d` prints them, with --file NAME those of "
                 "files; `dcs session clean %d` removes them\n",
                 session, session, grain, session);
}

}  // namespace dcs::commands
