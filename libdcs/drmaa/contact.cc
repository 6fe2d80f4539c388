// Sessions: which one a contact string means, and its end.
#include <algorithm>
#include <climits>
#include <cstdlib>

#include <pwd.h>
#include <unistd.h>

#include "base/text.h"
#include "session.h"

namespace dcs::drmaa {
namespace {

constexpr const char *base_ident = "drmaa";
constexpr int left_mark = 0;  // the grain of this number says that drmaa_exit was called while jobs were unfinished
constexpr std::size_t longest_name = 56;  // an ident has 64 bytes
constexpr int tries = 1000;               // to find a free number before other programs do

struct Found {
    std::string ident, state;
    int number = 0, unfinished = 0;
};

Outcome sessions_of_user(d_pool *pool, std::vector<Found> &found, int &removed) {
    d_info *info = nullptr;
    if (const int e = d_pool_query(pool, D_Q_SESSIONS, nullptr, -1, -1, &info); e != D_OK) return of_dcs(e);
    const std::string user = user_name();
    for (std::size_t i = 0; i < info->session_count; ++i) {
        const d_session_row &row = info->sessions[i];
        if (row.user == user) found.push_back({row.ident, row.state, row.session, row.ready + row.running});
    }
    removed = info->last_session;
    d_query_free(info);
    return {};
}

// The N of session=N, -1 if it is something else.
int number_in(std::string_view contact) {
    constexpr std::string_view prefix = "session=";
    int number = -1;
    return contact.starts_with(prefix) && read_number(contact.substr(prefix.size()), number) ? number : -1;
}

bool is_ours(const Found &session) {
    return session.ident == base_ident || session.ident.rfind(std::string(base_ident) + ".", 0) == 0;
}

}  // namespace

std::string user_name() {
    const passwd *user = getpwuid(geteuid());
    return user ? user->pw_name : std::to_string(geteuid());
}

Outcome Session::open(const std::string &contact, std::shared_ptr<Session> &opened) {
    d_pool_options options;
    d_pool_options_init(&options);
    d_pool *pool = d_pool_open(&options);
    if (!pool) return of_dcs(d_errornumber());
    std::shared_ptr<Session> session(new Session(pool));
    const char *from_environment = std::getenv("DCS_DRMAA_SESSION");
    if (Outcome o = session->find(contact.empty() && from_environment ? from_environment : contact); !o.good())
        return o;
    opened = std::move(session);
    return {};
}

Session::~Session() { d_pool_close(pool_); }

Outcome Session::find(const std::string &contact) {
    const int wanted = number_in(contact);
    if (wanted < 0 && !contact.empty() && !is_name(contact, longest_name))
        return {DRMAA_ERRNO_INVALID_CONTACT_STRING, "the contact is \"" + contact +
                                                        "\": it must be session=NUMBER, or a name of at most " +
                                                        std::to_string(longest_name) + " letters, digits and . _ -"};
    std::vector<Found> all;
    int removed = -1;
    if (Outcome o = sessions_of_user(pool_, all, removed); !o.good()) return o;
    int free_number = removed > 0 && removed < INT_MAX / 2 ? removed + 1 : 1;
    for (const Found &session : all)
        if (session.number == free_number) ++free_number;  // in ascending order
    repeats_ = wanted < 0 && !contact.empty();
    contact_ = contact;
    const std::string ident = repeats_ ? std::string(base_ident) + "." + contact : base_ident;
    for (const Found &session : all) {
        if (!is_ours(session)) continue;
        const bool active = session.state == "active";
        if (session.number == wanted) {
            if (Outcome o = take_over(session.ident, wanted, !active); !o.good()) return o;
            return know_jobs();
        }
        if (!active) continue;
        const bool left = was_left(session.number);
        if (repeats_ && session.ident == ident && !left) return take_over(ident, session.number, false);
        if (wanted < 0 && left && session.unfinished == 0)
            d_pool_close_ses_of(pool_, user_name().c_str(), session.number);  // if not now, then next time
    }
    if (wanted >= 0)
        return {DRMAA_ERRNO_INVALID_CONTACT_STRING,
                "you have no session " + std::to_string(wanted) + " of DRMAA in this pool"};
    return begin(ident, free_number);
}

Outcome Session::begin(const std::string &ident, int number) {
    if (const int e = d_pool_get_auth(pool_, ident.c_str()); e != D_OK) return of_dcs(e);
    int error = D_E_SESSION_ACTIVE;
    for (int i = 0; i < tries && (error == D_E_SESSION_ACTIVE || error == D_E_SESSION_CLOSED); ++i)
        error = d_pool_open_ses(pool_, number_ = number + i);
    if (error != D_OK) return of_dcs(error);
    if (contact_.empty()) contact_ = "session=" + std::to_string(number_);
    // From now on a submission that is repeated after a broken connection changes nothing.
    const int e = d_pool_resume_ses(pool_, number_, 0);
    return e == D_OK ? Outcome{} : of_dcs(e);
}

Outcome Session::take_over(const std::string &ident, int number, bool closed) {
    number_ = number;
    if (const int e = d_pool_get_auth(pool_, ident.c_str()); e != D_OK) return of_dcs(e);
    const int e = closed ? d_pool_reopen_ses(pool_, number, 1) : d_pool_resume_ses(pool_, number, 1);
    return e == D_OK ? Outcome{} : of_dcs(e);
}

bool Session::was_left(int number) {
    d_info *info = nullptr;
    const int e = d_pool_query(pool_, D_Q_GRAIN, nullptr, number, left_mark, &info);
    d_query_free(info);
    return e == D_OK;
}

Outcome Session::know_jobs() {
    d_info *info = nullptr;
    if (const int e = d_pool_query(pool_, D_Q_GRAINS, nullptr, number_, -1, &info); e != D_OK) return of_dcs(e);
    for (std::size_t i = 0; i < info->grain_count; ++i) {
        const int grain = info->grains[i].grain;
        if (grain == left_mark) continue;
        next_ = std::max(next_, grain + 1);
        if (grain >= 1) unreaped_.insert(grain);
    }
    d_query_free(info);
    return {};
}

Outcome Session::leave() {
    std::lock_guard lock(mutex_);
    if (left_) return {DRMAA_ERRNO_NO_ACTIVE_SESSION, ""};
    std::vector<Found> all;
    int removed = -1;
    if (Outcome o = sessions_of_user(pool_, all, removed); !o.good()) return {DRMAA_ERRNO_DRMS_EXIT_ERROR, o.text};
    const auto mine = std::find_if(all.begin(), all.end(), [&](const Found &s) { return s.number == number_; });
    int error = D_OK;
    if (mine != all.end() && mine->state == "active" && mine->unfinished == 0) {
        error = d_pool_close_ses(pool_, number_);
    } else if (mine != all.end() && mine->state == "active") {
        Order mark{.number = left_mark, .arguments = {"/bin/true"}, .label = "drmaa_exit"};
        std::size_t taken = 0;
        error = submit(pool_, number_, {mark}, taken);
        if (error == D_OK) error = d_pool_gkill(pool_, number_, left_mark);
    }
    // Another program has the session now: it is not this one's to end.
    if (error != D_OK && error != D_E_SESSION_TAKEN) return {DRMAA_ERRNO_DRMS_EXIT_ERROR, of_dcs(error).text};
    left_ = true;
    return {};
}

}  // namespace dcs::drmaa
