#include "scheduler.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <pwd.h>
#include <unistd.h>

#include "client/call.h"
#include "client/query.h"
#include "client/remote.h"
#include "commands/dcs/frame/json.h"
#include "commands/dcs/frame/this_pool.h"
#include "commands/dcs/frame/unicode.h"

namespace dcs::commands {
namespace {

bool patience_is_the_users = std::getenv("DCS_PATIENCE_S") != nullptr;

Session session_of(const wire::SessionRow &row) {
    Session session{row.user, row.ident, row.state};
    session.number = row.session;
    session.ready = row.ready;
    session.running = row.running;
    session.finished = row.finished;
    session.killed = row.killed;
    session.sent = row.sent;
    session.saved_cpu_s = row.saved_cpu_s;
    session.command = row.command;
    session.label = row.label;
    session.nice = row.nice;
    session.failed = row.failed;
    session.submitted_s = row.submitted_s;
    session.settled_s = row.settled_s;
    session.stuck = row.stuck;
    session.json = wire::to_json(row);
    return session;
}

}  // namespace

void pause_ms(long ms) {
    const timespec pause = {ms / 1000, ms % 1000 * 1'000'000};
    ::nanosleep(&pause, nullptr);
}

Status Info::ask(wire::QueryType type, const std::string &user, int session, int grain, const std::string &state) {
    wire::Query query;
    query.type = type;
    query.user = user;
    query.session = session;
    query.grain = grain;
    query.status = state;
    static_cast<wire::QueryReply &>(*this) = {};
    return client::query_rows(this_pool(), query, *this);
}

std::string own_user() {
    static const std::string name = [] {
        // A remote scheduler knows the user by the name that its dcs_begin gave.
        if (client::adopt_remote(this_pool()) && this_pool().remote())
            if (const auto program = pki::program_name(this_pool().remote()->certificate.name)) return program->user;
        char buffer[4096];
        passwd entry = {}, *found = nullptr;
        if (::getpwuid_r(::geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found != nullptr)
            return std::string(found->pw_name);
        return "uid" + std::to_string(::geteuid());
    }();
    return name;
}

bool user_set_patience() { return patience_is_the_users; }

void set_patience(int seconds) {
    if (!patience_is_the_users) this_pool().set_patience(seconds);
    if (seconds >= work_patience_s) this_pool().waits = nullptr;  // who waits so long says it in its own words
}

std::string Session::name() const { return (own() ? "" : user + "/") + std::to_string(number); }

std::string Session::what(std::size_t columns) const {
    const std::string typed = (label.empty() ? "" : "[" + label + "] ") + (command.empty() ? ident : command);
    return shortened(printable(typed), columns);
}

// The ident is submit-DIGEST-GRAINS-SUFFIX.
int Session::declared() const {
    int grains = 0, end = 0;
    const int read = std::sscanf(ident.c_str(), "submit-%*24[0-9a-f]-%d-%*8[0-9a-f]%n", &grains, &end);
    return read == 1 && end == static_cast<int>(ident.size()) ? grains : 0;
}

int Session::not_submitted() const { return std::max(0, declared() - ready - running - finished - killed); }

namespace {

// By when it was opened; a scheduler of an earlier release does not tell.
bool is_newer(const Session &a, const Session &b) {
    return std::pair(a.submitted_s, a.number) > std::pair(b.submitted_s, b.number);
}

}  // namespace

SessionsAnswer sessions_of(const SessionSelector &selector) {
    SessionsAnswer answer;
    const std::string user = selector.user.empty() ? own_user() : selector.user;
    Info info;
    const bool one = selector.which == SessionSelector::Which::number;
    if (const Status s =
            info.ask(wire::QueryType::sessions, selector.of_all_users ? "" : user, one ? selector.number : -1);
        !s) {
        answer.failed = true;
        answer.failure = call_failure("the list of sessions", s);
        return answer;
    }
    answer.last_number = info.last_number;
    for (const wire::SessionRow &row : info.sessions) {
        Session session = session_of(row);
        if (!selector.of_all_users && session.user != user) continue;
        if (selector.which == SessionSelector::Which::number && session.number != selector.number) continue;
        if (selector.which == SessionSelector::Which::last && !answer.sessions.empty() &&
            is_newer(session, answer.sessions[0]))
            answer.sessions.clear();
        if (selector.which != SessionSelector::Which::last || answer.sessions.empty())
            answer.sessions.push_back(std::move(session));
    }
    if (!answer.sessions.empty() || selector.which == SessionSelector::Which::all) return answer;
    answer.failed = true;
    const std::string whose = selector.user.empty() ? "" : selector.user + "/";
    answer.failure = not_found_failure(selector.which == SessionSelector::Which::last
                                           ? user + " has no session"
                                           : "there is no session " + whose + std::to_string(selector.number),
                                       "`dcs session ls` lists the existing sessions");
    answer.failure.code = "session_unknown";
    return answer;
}

SessionsAnswer sessions_of(const std::vector<std::string> &selectors) {
    SessionsAnswer all;
    for (const std::string &selector_text : selectors) {
        const auto selector = session_selector(selector_text);
        SessionsAnswer one;
        if (selector) {
            one = sessions_of(*selector);
        } else {
            one.failed = true;
            one.failure = usage_failure(selector.status().text);
        }
        if (one.failed) return one;
        for (Session &session : one.sessions) {
            const bool seen = std::any_of(all.sessions.begin(), all.sessions.end(), [&](const Session &s) {
                return s.user == session.user && s.number == session.number;
            });
            if (!seen) all.sessions.push_back(std::move(session));
        }
    }
    return all;
}

SessionsAnswer chosen_sessions(const std::vector<std::string> &selectors) {
    std::vector<std::string> own = selectors;
    for (std::string &selector : own)
        if (selector == "all") selector = own_user() + "/all";
    return sessions_of(own);
}

SessionsAnswer own_sessions() {
    SessionSelector selector;
    selector.which = SessionSelector::Which::all;
    return sessions_of(selector);
}

Result<wire::Explanation> explain(const std::string &user, int session, int grain) {
    return client::ask<wire::Explanation>(this_pool(), wire::Explain{user, session, grain},
                                          client::How{client::With::any});
}

std::string json_of_system(const wire::SystemRow &row) {
    JsonObject json;
    json.add("version", row.version).add("epoch", row.epoch).add("turn", row.turn).add("up_s", row.up_s);
    json.add("hosts", row.hosts).add("hosts_active", row.hosts_active).add("sessions_active", row.sessions_active);
    return json.add("ready", row.ready).add("running", row.running).text();
}

}  // namespace dcs::commands
